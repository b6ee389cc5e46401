#include "profile/profiler.h"

#include "base/error.h"
#include "config/config.h"
#include "run/learning_rate.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace tokamak {
namespace {

double seconds_of(std::chrono::steady_clock::time_point at) {
  return std::chrono::duration<double>(at.time_since_epoch()).count();
}

}  // namespace

struct StepProfiler::MadeBatches {
  std::mutex mutex;
  std::vector<MadeBatch> batches;
};

TimeBreakdown StepProfile::breakdown() const {
  std::vector<ActivitySpan> spans;
  for (const RecordedWork& work : works) add_spans(work, spans);
  for (const Span& wait : data_waits) spans.push_back({Activity::kDataWait, {}, wait.begin, wait.end});
  return break_down(spans, seconds);
}

StepProfiler::StepProfiler(Session& session, StepQueue& queue, Backend& backend, Loader* loader,
                           const ProfileOptions& options, bool replays)
    : session_(session), queue_(queue), backend_(backend), loader_(loader), recorder_(backend) {
  profile_.steps = options.steps;
  if (options.warmup > 0) phases_.push_back({options.warmup, nullptr, &warmup_});
  phases_.push_back({options.steps, nullptr, &before_});
  // Before there are tools that may stay attached.
  if (replays) phases_.push_back({options.steps, &nobody_, &unrecorded_});
  phases_.push_back({options.steps, &recorder_, &profile_.seconds});
  phases_.push_back({options.steps, nullptr, &after_});
  phase_ = phases_.begin();
  left_ = phase_->steps;
}

int64_t StepProfiler::num_steps() const {
  int64_t steps = 0;
  for (const Phase& phase : phases_) steps += phase.steps;
  return steps;
}

void StepProfiler::step_begins() {
  TOKAMAK_CHECK(!done(), "a step behind those that are profiled");
  if (left_ == phase_->steps) begin_phase();
  --left_;
  turned_ = recorder_.now();
}

void StepProfiler::data_read() {
  if (records()) profile_.data_waits.push_back({turned_, recorder_.now()});
}

void StepProfiler::step_submitted() {
  if (left_ > 0) return;
  end_phase();
  ++phase_;
  if (!done()) left_ = phase_->steps;
}

void StepProfiler::begin_phase() {
  queue_.finish();
  std::unique_ptr<DeviceSensors> sensors = records() ? backend_.open_sensors() : nullptr;
  if (records()) watch_loader();
  queue_.run([this] {
    session_.observe(phase_->observer);
    records() ? recorder_.start_watching() : recorder_.start();
  });
  if (records()) sensors_ = std::make_unique<SensorLog>(std::move(sensors));
}

void StepProfiler::end_phase() {
  queue_.finish();
  *phase_->seconds = recorder_.now();
  if (records()) end_recording();
}

void StepProfiler::watch_loader() {
  if (!loader_) return;
  made_ = std::make_shared<MadeBatches>();
  loader_->watch([made = made_](const MadeBatch& batch) {
    std::lock_guard lock(made->mutex);
    made->batches.push_back(batch);
  });
}

void StepProfiler::end_recording() {
  profile_.clock = recorder_.clock();
  profile_.start_seconds = recorder_.start_seconds();
  profile_.sensors = sensors_->stop();
  for (TimedReading& reading : profile_.sensors) reading.at -= profile_.start_seconds;
  queue_.run([this] { profile_.works = recorder_.take(); });
  if (!loader_) return;
  loader_->watch(nullptr);
  std::lock_guard lock(made_->mutex);
  for (const MadeBatch& batch : made_->batches)
    profile_.workers.push_back({batch.worker, std::max(seconds_of(batch.begin) - profile_.start_seconds, 0.0),
                                seconds_of(batch.end) - profile_.start_seconds});
  std::erase_if(profile_.workers, [](const WorkerSpan& span) { return span.end < 0; });
}

StepProfile StepProfiler::take() {
  TOKAMAK_CHECK(done(), "there are steps to come");
  profile_.plain_seconds = (before_ + after_) / 2;
  profile_.unrecorded_seconds = unrecorded_ > 0 ? unrecorded_ : profile_.plain_seconds;
  return std::move(profile_);
}

StepProfile profile_steps(Session& session, Backend& backend, const StepSource& source, const ProfileOptions& options,
                          bool replays) {
  std::optional<StepProfiler> watching;  // outlives the queue, whose thread tells it of work
  StepQueue queue(session, backend);
  queue.run(source.begin);
  StepProfiler& profiler = watching.emplace(session, queue, backend, source.loader, options, replays);
  const RunConfig& asked = session.resolved().asked;
  int64_t end = source.done + profiler.num_steps();
  for (int64_t step = source.done; step < end; ++step) {
    profiler.step_begins();
    std::vector<Batch> batches = source.next();
    profiler.data_read();
    queue.submit(std::move(batches), {.step = step + 1, .lr = learning_rate(step, asked.optimizer, asked.train.steps)});
    if (!session.resolved().compile.async) queue.finish();
    profiler.step_submitted();
    queue.take();
  }
  return profiler.take();
}

}  // namespace tokamak
