#include "profile/profile_run.h"

#include "base/error.h"
#include "ladder/trial.h"
#include "profile/trace.h"
#include "run/random_batch.h"
#include "run/rank_decisions.h"
#include "run/run_data.h"
#include "run/run_progress.h"

#include <memory>

namespace tokamak {
namespace {

// The run's data from where it is, or random tokens, the same each step.
class Feed {
 public:
  Feed(const Session& session, bool reads_data, const FoundCheckpoint* found)
      : micro_batches_(session.micro_batches()) {
    const ResolvedRun& run = session.resolved();
    if (reads_data) data_ = std::make_unique<RunData>(run, found, /*records=*/false);
    for (int64_t i = 0; i < micro_batches_ && !reads_data; ++i) random_.push_back(random_batch(run, uint64_t(i)));
  }

  Loader* loader() { return data_ ? &data_->loader() : nullptr; }

  std::vector<Batch> next() {
    if (!data_) return random_;
    std::vector<Batch> batches;
    for (int64_t i = 0; i < micro_batches_; ++i) batches.push_back(data_->loader().next());
    return batches;
  }

 private:
  int64_t micro_batches_;
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
RunConfig steps_alone(RunConfig config, const FoundCheckpoint* found) {
  config.train.eval_every = config.train.sample_every = 0;
  config.train.tasks.clear();
  return found ? going_on(config, *found) : config;
}

// The parameters and states of the first step.
void begin(Session& session, const FoundCheckpoint* found) {
  if (!found) return session.initialise();
  session.initialise_states();
  load_progress(*found, session);
}

}  // namespace

bool replays_steps(const Session& session, bool is_gpu) { return is_gpu && session.records(); }

ProfileReport gather_report(Session& session, const StepProfile& profile, const Platform& platform,
                            const MeshRanks* ranks, const ProfileRunOptions& options) {
  ProfileReport report{.resolved = session.resolved(), .target = platform.target};
  report.predicted_seconds = session.run().seconds;
  report.predicted_exposed_seconds = session.compiled().exposed_seconds();
  report.ranks = gather(ranks, summary_of(profile));
  if (options.traces) report.trace = gather_trace(profile, ranks);
  report.timeline = step_timeline(profile);
  report.memory = memory_picture(largest_plan(session), profile);
  report.clock = profile.clock;
  report.sensors = summarise(profile.sensors);
  report.kernels = kernel_profiles(session, profile, platform, options.is_gpu);
  return report;
}

ProfileReport profile_run(const RunConfig& config, const Platform& platform, Backend& backend, const MeshRanks* ranks,
                          const ProfileRunOptions& options, const FoundCheckpoint* found) {
  require_same(ranks, "the checkpoint to go on from", found ? found->path.filename().string() : "none");
  Platform same = platform;
  same.target = of_leader(ranks, platform.target);
  ResolvedRun run = resolve(steps_alone(config, found), same.target);
  PreparedTrial prepared = prepare_trial(run, same, backend, ranks);
  std::string failure = prepared.failure;
  std::unique_ptr<Session> session = failure.empty() ? make_session(prepared, backend, ranks, failure) : nullptr;
  if (!session) user_error("[profile] expected a run that fits, got one that cannot run: {}", failure);
  Feed feed(*session, options.reads_data, found);
  StepSource source{.begin = [&] { begin(*session, found); },
                    .next = [&] { return feed.next(); },
                    .loader = feed.loader(),
                    .done = found ? found->state.step : 0};
  StepProfile profile =
      profile_steps(*session, backend, source, options.steps, replays_steps(*session, options.is_gpu));
  return gather_report(*session, profile, same, ranks, options);
}

}  // namespace tokamak
