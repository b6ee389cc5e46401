#include "base/hang_watch.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/error.h"

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTick{100};
constexpr std::chrono::milliseconds kStalled{1000};  // longer between two ticks: this process was stopped itself
constexpr double kHurry = 1;                         // seconds of a wait when the user wants to end
constexpr double kAnswerShare = 1. / 4;              // of the least wait, in which a rank has to answer
constexpr double kLeastAnswer = 0.75;                // seconds

// Of the ranks that wait for others, the one that does so for the longest.
std::string longest_wait(std::span<const std::string> names, const RankAnswers& answers) {
  const RankReport* longest = nullptr;
  size_t rank = 0;
  for (size_t r = 0; r < answers.size(); ++r)
    if (answers[r] && answers[r]->waits() && (!longest || answers[r]->seconds > longest->seconds))
      longest = &*answers[r], rank = r;
  if (!longest) return "";
  std::string what = longest->waits_in.empty() ? "for its device" : "in " + longest->waits_in;
  bool in_step = longest->phase == RankPhase::kStep || longest->phase == RankPhase::kDevice;
  std::string when = in_step ? fmt::format("of step {}", longest->step)
                             : fmt::format("while {} (step {})", phase_text(longest->phase), longest->step);
  return fmt::format("; {} has waited {:.1f} s {} {}", names[rank], longest->seconds, what, when);
}

}  // namespace

bool is_stuck(const RankReport& report, double least) {
  return report.phase == RankPhase::kStep && report.waits_in.empty() && report.pace > 0 &&
         report.seconds > std::max(least, kHangPaces * report.pace);
}

std::string find_hang(std::span<const std::string> names, const RankAnswers& before, const RankAnswers& now,
                      double least) {
  std::string who;
  bool waits = std::any_of(now.begin(), now.end(), [](const auto& answer) { return answer && answer->waits(); });
  for (size_t r = 0; r < names.size(); ++r) {
    std::string what;
    if (!before[r] && !now[r])
      what = "its process does not answer; it may be stopped, or its machine or link be gone";
    else if (waits && before[r] && now[r] && before[r]->moves == now[r]->moves && is_stuck(*now[r], least))
      what = fmt::format("it has been computing in step {} for {:.1f} s, where all of a step takes {:.1f}",
                         now[r]->step, now[r]->seconds, now[r]->pace);
    if (!what.empty()) who += fmt::format("{}{} hangs: {}", who.empty() ? "" : "; ", names[r], what);
  }
  return who.empty() ? "" : "[ranks] " + who + longest_wait(names, now);
}

HangWatch::HangWatch(Options options, Run run) : options_(std::move(options)), run_(std::move(run)) {
  if (options_.least_seconds > 0) thread_ = std::jthread([this](const std::stop_token& over) { watch(over); });
}

void HangWatch::watch(const std::stop_token& over) {
  std::mutex mutex;
  std::condition_variable_any waiting;
  std::unique_lock lock(mutex);
  constexpr Clock::time_point kNever = Clock::time_point::max();
  Clock::time_point late = kNever;
  for (Clock::time_point last = Clock::now(); !over.stop_requested();) {
    waiting.wait_for(lock, over, kTick, [] { return false; });
    Clock::time_point now = Clock::now();
    if (now - std::exchange(last, now) > kStalled)
      for (const auto& rank : run_.mine) rank->excuse();
    if (std::string failure = run_.failure(); !failure.empty()) {
      late = !only_stuck_are_left() ? kNever : late == kNever ? now + options_.grace : late;
      if (now >= late) return run_.end(failure);
    } else if (waits_too_long() && now >= next_ask_) {
      ask_all(over);
      last = Clock::now();
    }
  }
}

double HangWatch::answer_seconds() const {
  return hurries() ? kLeastAnswer : std::max(kLeastAnswer, kAnswerShare * options_.least_seconds);
}

// Soon enough that the first answer is due when the wait is too long.
bool HangWatch::waits_too_long() {
  return std::any_of(run_.mine.begin(), run_.mine.end(), [&](const auto& rank) {
    RankReport report = rank->report();
    double limit = std::max(options_.least_seconds, kHangPaces * report.pace) - answer_seconds();
    return (report.waits() || report.phase == RankPhase::kStart) && report.seconds > (hurries() ? kHurry : limit);
  });
}

// Whoever does not answer once may just be slow. Answers that came to a process that was stopped meanwhile say nothing.
void HangWatch::ask_all(const std::stop_token& over) {
  double seconds = answer_seconds();
  auto allowed = [&](double times) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(times * seconds));
  };
  Clock::time_point latest = allowed(2) + 2 * kStalled;
  RankAnswers before = run_.ask(seconds);
  bool suspicious = std::any_of(before.begin(), before.end(), [&](const auto& answer) {
    return !answer || is_stuck(*answer, options_.least_seconds);
  });
  next_ask_ = allowed(1);
  if (!suspicious || over.stop_requested()) return;
  auto asked = Clock::now();
  RankAnswers now = run_.ask(seconds);
  if (over.stop_requested() || !run_.failure().empty()) return;
  if (Clock::now() > latest) {
    for (const auto& rank : run_.mine) rank->excuse();
    return;
  }
  std::this_thread::sleep_until(asked + kTick);  // in which a rank that goes on moves
  std::string reason = find_hang(options_.names, before, now, options_.least_seconds);
  if (!reason.empty()) run_.fail(reason);
}

// Others may have something to do still, such as to save what was computed.
bool HangWatch::only_stuck_are_left() {
  bool any = false;
  for (const auto& rank : run_.mine) {
    RankReport report = rank->report();
    if (report.phase == RankPhase::kEnded) continue;
    if (!is_stuck(report, options_.least_seconds)) return false;
    any = true;
  }
  return any;
}

}  // namespace tokamak
