// Where a rank of a run stands: it notes what it does, and others may ask at any time, also when it hangs.
// Tests: tests/base/rank_progress_test.cpp.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tokamak {

/// What a rank is in. Only kStep and kDevice have a pace; all others may take as long as they need.
enum class RankPhase {
  kStart,         // until its first step is done: compiling, tuning, loading
  kBetweenSteps,  // what has no name of its own
  kData,          // it waits for its data
  kStep,          // it computes
  kDevice,        // it has queued a step, and waits for its device
  kEvaluation,
  kSample,
  kSave,
  kEnded,
};
/// "reading data": for messages.
std::string_view phase_text(RankPhase phase);

struct RankReport {
  int64_t step = 0;  // the last that has begun; 0: none
  RankPhase phase = RankPhase::kStart;
  std::string waits_in;  // the collective in which it waits for other ranks; empty: in none
  double seconds = 0;    // since it last moved on
  int64_t moves = 0;     // how often it has
  double pace = 0;       // the slowest of its last steps, in seconds; 0: it has none yet

  bool waits() const { return !waits_in.empty() || phase == RankPhase::kDevice; }
  bool operator==(const RankReport&) const = default;
};
/// As a text and back; UserError of another text.
std::string print(const RankReport& report);
RankReport parse_rank_report(const std::string& text);

/// For any thread. A rank has two that do something: one takes steps, the other reads data, evaluates and saves.
class RankProgress {
 public:
  /// While it lives the rank is in what it was made for; then in what it was in before.
  class Scope {
   public:
    explicit Scope(std::function<void()> end) : end_(std::move(end)) {}
    Scope(Scope&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
    Scope& operator=(Scope&&) = delete;
    ~Scope() {
      if (end_) end_();
    }

   private:
    std::function<void()> end_;
  };

  /// kData, kEvaluation, kSample or kSave, on the thread that does not take steps.
  [[nodiscard]] Scope enter(RankPhase phase);
  /// kStep or kDevice, on the other one.
  [[nodiscard]] Scope enter_step(RankPhase phase, int64_t step);
  /// A call in which it waits for others. `text`, for the messages, is called while the scope lives, by any thread.
  [[nodiscard]] Scope wait_in(std::function<std::string()> text);
  /// A kernel is done.
  void moved() { moves_.fetch_add(1, std::memory_order_relaxed); }
  /// A step is done; the first has what is done once, and sets no pace.
  void step_done(double seconds);
  void ended();

  /// `seconds` are exact when it is called often.
  RankReport report();
  /// What has passed does not count: this process did not run.
  void excuse();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kRecent = 50;

  void look();

  std::atomic<int64_t> moves_ = 0;
  std::mutex mutex_;  // of all others
  RankPhase phase_ = RankPhase::kStart;
  std::optional<RankPhase> step_phase_;
  int64_t step_ = 0, steps_done_ = 0;
  std::function<std::string()> call_;
  std::array<double, kRecent> recent_ = {};  // seconds of steps
  int64_t seen_moves_ = 0;
  Clock::time_point moved_at_ = Clock::now();
};

/// RankProgress::enter where there is one.
std::optional<RankProgress::Scope> enter(RankProgress* progress, RankPhase phase);
std::optional<RankProgress::Scope> enter_step(RankProgress* progress, RankPhase phase, int64_t step);

}  // namespace tokamak
