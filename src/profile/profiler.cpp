#include "profile/profiler.h"

#include "config/config.h"
#include "train/schedule.h"
#include "train/step_queue.h"

namespace tokamak {
namespace {

class Profiler {
 public:
  Profiler(Session& session, Backend& backend, const NextBatches& next, const ProfileOptions& options)
      : session_(session), backend_(backend), next_(next), options_(options), recorder_(backend),
        queue_(session, backend) {}

  StepProfile run(bool replays) {
    queue_.run([this] { session_.initialise(); });
    time_steps(options_.warmup);
    double before = time_steps(options_.steps);
    WorkObserver nobody;                                       // who keeps steps from being replayed, and nothing else
    double unrecorded = replays ? time_observed(&nobody) : 0;  // before there are tools that may stay attached
    StepProfile profile = record_steps();
    profile.plain_seconds = (before + time_steps(options_.steps)) / 2;
    profile.unrecorded_seconds = replays ? unrecorded : profile.plain_seconds;
    return profile;
  }

 private:
  StepProfile record_steps() {
    StepProfile profile{.steps = options_.steps};
    SensorLog sensors(backend_.open_sensors());
    watches_ = true;
    profile.seconds = time_observed(&recorder_);
    watches_ = false;
    profile.sensors = sensors.stop();
    profile.clock = recorder_.clock();
    profile.start_seconds = recorder_.start_seconds();
    queue_.run([&] { profile.works = recorder_.take(); });
    profile.data_waits = waits_;
    return profile;
  }

  double time_observed(WorkObserver* observer) {
    queue_.run([&] { session_.observe(observer); });
    double seconds = time_steps(options_.steps);
    queue_.run([&] { session_.observe(nullptr); });
    return seconds;
  }

  // The next step's data is read, and the step asked for, while the one before runs.
  double time_steps(int64_t steps) {
    waits_.clear();
    queue_.run([this] { watches_ ? recorder_.start_watching() : recorder_.start(); });
    for (int64_t i = 0; i < steps; ++i) {
      double begin = recorder_.now();
      std::vector<Batch> batches = next_();
      waits_.push_back({begin, recorder_.now()});
      const RunConfig& config = session_.config();
      double lr = learning_rate(step_, config.optimizer, config.train.steps);
      queue_.submit(std::move(batches), {.step = ++step_, .lr = lr});
      if (!config.compile.async) queue_.finish();
    }
    queue_.finish();
    double seconds = recorder_.now();
    queue_.take();
    return seconds;
  }

  Session& session_;
  Backend& backend_;
  const NextBatches& next_;
  ProfileOptions options_;
  WorkRecorder recorder_;
  bool watches_ = false;
  std::vector<Span> waits_;
  int64_t step_ = 0;  // done or asked for
  StepQueue queue_;   // last: its thread uses the others
};

}  // namespace

TimeLedger StepProfile::ledger() const {
  std::vector<ActivitySpan> spans;
  for (const RecordedWork& work : works) add_spans(work, spans);
  for (const Span& wait : data_waits) spans.push_back({Activity::kDataWait, {}, wait.begin, wait.end});
  return make_ledger(spans, seconds);
}

StepProfile profile_steps(Session& session, Backend& backend, const NextBatches& next, const ProfileOptions& options,
                          bool replays) {
  return Profiler(session, backend, next, options).run(replays);
}

}  // namespace tokamak
