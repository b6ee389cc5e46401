#include "profile/profile_run.h"

#include "base/error.h"
#include "profile/trace.h"
#include "train/random_batch.h"
#include "train/rank_decisions.h"
#include "train/run_data.h"
#include "train/trial.h"

#include <chrono>
#include <mutex>

namespace tokamak {
namespace {

// Of the run's data, or random tokens, the same each step.
class Feed {
 public:
  Feed(const Session& session, bool reads_data) : micro_batches_(session.micro_batches()) {
    const RunConfig& config = session.config();
    if (reads_data) {
      data_ = std::make_unique<RunData>(config, nullptr, /*records=*/false);
      data_->loader().watch([this](const MadeBatch& made) {
        std::lock_guard lock(mutex_);
        made_.push_back(made);
      });
    } else {
      for (int64_t i = 0; i < micro_batches_; ++i) random_.push_back(random_batch(config, uint64_t(i)));
    }
  }

  std::vector<Batch> next() {
    if (!data_) return random_;
    std::vector<Batch> batches;
    for (int64_t i = 0; i < micro_batches_; ++i) batches.push_back(data_->loader().next());
    return batches;
  }

  /// What the loader's threads made in so many seconds, from that time of the machine's clock on.
  std::vector<WorkerSpan> made(double from, double seconds) {
    std::lock_guard lock(mutex_);
    std::vector<WorkerSpan> spans;
    for (const MadeBatch& made : made_) {
      WorkerSpan span{made.worker, seconds_of(made.begin) - from, seconds_of(made.end) - from};
      if (span.end > 0 && span.begin < seconds) spans.push_back(span);
    }
    return spans;
  }

 private:
  static double seconds_of(std::chrono::steady_clock::time_point at) {
    return std::chrono::duration<double>(at.time_since_epoch()).count();
  }

  int64_t micro_batches_;
  std::mutex mutex_;
  std::vector<MadeBatch> made_;
  std::unique_ptr<RunData> data_;
  std::vector<Batch> random_;
};

std::vector<RankSummary> gather(const MeshRanks* ranks, const RankSummary& mine) {
  if (!ranks) return {mine};
  std::vector<RankSummary> all;
  for (const std::string& text : ranks->world().exchange(to_text(mine))) all.push_back(rank_summary(text));
  return all;
}

const Plan& largest_plan(const Session& session) {
  const std::vector<CompiledGraph>& programs = session.compiled().programs;
  auto index = size_t(&session.compiled().largest() - programs.data());
  return session.program(index).plan();
}

// Of training, only its steps.
RunConfig steps_alone(RunConfig config) {
  config.train.eval_every = config.train.sample_every = 0;
  return config;
}

}  // namespace

ProfileReport profile_run(const RunConfig& config, const Platform& platform, Backend& backend, const MeshRanks* ranks,
                          const ProfileRunOptions& options) {
  Platform same = platform;
  same.target = of_leader(ranks, platform.target);
  PreparedTrial prepared = prepare_trial(steps_alone(config), same, backend, ranks);
  std::string failure = prepared.failure;
  std::unique_ptr<Session> session = failure.empty() ? make_session(prepared, backend, ranks, failure) : nullptr;
  if (!session) user_error("[profile] expected a run that fits, got one that cannot run: {}", failure);
  Feed feed(*session, options.reads_data);
  bool replays = options.is_gpu && session->config().compile.cuda_graph && session->reference_nodes().empty();
  StepProfile profile = profile_steps(
      *session, backend, [&] { return feed.next(); }, options.steps, replays);
  ProfileReport report{.config = session->config(), .target = same.target};
  report.predicted_seconds = session->run().seconds;
  report.predicted_exposed_seconds = session->compiled().exposed_seconds();
  report.ranks = gather(ranks, summary_of(profile));
  profile.workers = feed.made(profile.start_seconds, profile.seconds);
  if (options.traces) report.trace = gather_trace(profile, ranks);
  report.timeline = step_timeline(profile);
  report.memory = memory_picture(largest_plan(*session), profile);
  report.clock = profile.clock;
  report.sensors = summarise(profile.sensors);
  report.kernels = kernel_profiles(*session, profile, same, options.is_gpu);
  return report;
}

}  // namespace tokamak
