#include "base/rank_progress.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"

namespace tokamak {

std::string_view phase_text(RankPhase phase) {
  switch (phase) {
    case RankPhase::kStart: return "starting";
    case RankPhase::kBetweenSteps: return "between steps";
    case RankPhase::kData: return "reading data";
    case RankPhase::kStep: return "computing";
    case RankPhase::kDevice: return "waiting for its device";
    case RankPhase::kEvaluation: return "evaluating";
    case RankPhase::kSample: return "writing a sample";
    case RankPhase::kSave: return "saving";
    case RankPhase::kEnded: return "at its end";
  }
  return "";
}

std::string print(const RankReport& r) {
  return fmt::format("{} {} {} {} {} {}", r.step, int(r.phase), r.seconds, r.moves, r.pace, r.waits_in);
}

RankReport parse_rank_report(const std::string& text) {
  RankReport report;
  int phase = -1;
  std::istringstream in(text);
  in >> report.step >> phase >> report.seconds >> report.moves >> report.pace;
  if (!in || phase < 0 || phase > int(RankPhase::kEnded)) user_error("[ranks] expected a report, got '{}'", text);
  report.phase = RankPhase(phase);
  in.get();
  std::getline(in, report.waits_in, '\0');
  return report;
}

RankProgress::Scope RankProgress::enter(RankPhase phase) {
  std::lock_guard lock(mutex_);
  moved();
  return Scope([this, before = std::exchange(phase_, phase)] {
    std::lock_guard end(mutex_);
    moved();
    phase_ = before;
  });
}

RankProgress::Scope RankProgress::enter_step(RankPhase phase, int64_t step) {
  std::lock_guard lock(mutex_);
  moved();
  step_ = step;
  return Scope([this, before = std::exchange(step_phase_, phase)] {
    std::lock_guard end(mutex_);
    moved();
    step_phase_ = before;
  });
}

RankProgress::Scope RankProgress::wait_in(std::function<std::string()> text) {
  std::lock_guard lock(mutex_);
  moved();
  return Scope([this, before = std::exchange(call_, std::move(text))]() mutable {
    std::lock_guard end(mutex_);
    moved();
    call_ = std::move(before);
  });
}

void RankProgress::step_done(double seconds) {
  std::lock_guard lock(mutex_);
  moved();
  if (steps_done_ == 0 && phase_ == RankPhase::kStart) phase_ = RankPhase::kBetweenSteps;
  if (steps_done_ > 0) recent_[size_t(steps_done_ - 1) % kRecent] = seconds;
  ++steps_done_;
}

void RankProgress::ended() {
  std::lock_guard lock(mutex_);
  moved();
  phase_ = RankPhase::kEnded;
  step_phase_.reset();
}

// Under the mutex. What moves often only counts; when it did is found out here.
void RankProgress::look() {
  int64_t moves = moves_.load(std::memory_order_relaxed);
  if (std::exchange(seen_moves_, moves) != moves) moved_at_ = Clock::now();
}

RankReport RankProgress::report() {
  std::lock_guard lock(mutex_);
  look();
  RankPhase phase = steps_done_ == 0 && phase_ != RankPhase::kEnded ? RankPhase::kStart : step_phase_.value_or(phase_);
  return {.step = step_,
          .phase = phase,
          .waits_in = call_ ? call_() : "",
          .seconds = std::chrono::duration<double>(Clock::now() - moved_at_).count(),
          .moves = seen_moves_,
          .pace = *std::max_element(recent_.begin(), recent_.end())};
}

std::optional<RankProgress::Scope> enter(RankProgress* progress, RankPhase phase) {
  return progress ? std::optional(progress->enter(phase)) : std::nullopt;
}

std::optional<RankProgress::Scope> enter_step(RankProgress* progress, RankPhase phase, int64_t step) {
  return progress ? std::optional(progress->enter_step(phase, step)) : std::nullopt;
}

void RankProgress::excuse() {
  std::lock_guard lock(mutex_);
  moved_at_ = Clock::now();
}

}  // namespace tokamak
