// Ranks that hang while others wait for them: a stopped process, a dead host, a thread that never goes on. Waiting too
// long makes a rank ask all where they stand; which of them hang is a pure function of two such rounds of answers.
// Tests: tests/base/hang_watch_test.cpp, tests/e2e/hang_test.cpp.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/rank_progress.h"

namespace tokamak {

/// By rank; nothing of one that has not answered.
using RankAnswers = std::vector<std::optional<RankReport>>;

/// How many times as long as the slowest of its last steps a rank may take for one.
inline constexpr double kHangPaces = 3;

/// Whether it has been within one step, outside of all calls, for so long that it is not expected to go on. `least`: in
/// seconds.
bool is_stuck(const RankReport& report, double least);

/// Why the run hangs, by two rounds of answers, one after the other; empty: it may go on. Those hang that have answered
/// neither time, and those that are stuck and have not moved in between. `names`: "rank 1 on host, cpu".
std::string find_hang(std::span<const std::string> names, const RankAnswers& before, const RankAnswers& now,
                      double least);

class HangWatch {
 public:
  struct Options {
    double least_seconds = 3;         // that a wait may take, whatever the pace
    std::vector<std::string> names;   // of all ranks
    std::function<bool()> hurries;    // whether the user waits for the end: who does not answer is not waited for then
    std::chrono::milliseconds grace;  // in which a rank of this process that hangs may end once the run has failed
  };
  /// How it meets the run. Called on the watch's thread.
  struct Run {
    std::vector<std::shared_ptr<RankProgress>> mine;  // ranks of this process
    std::function<RankAnswers(double seconds)> ask;   // waits no longer for answers
    std::function<void(const std::string& reason)> fail;
    std::function<std::string()> failure;                // of the run; empty: it has not failed
    std::function<void(const std::string& reason)> end;  // the process: the run has failed, and ranks of it hang
  };

  HangWatch(Options options, Run run);
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

 private:
  void watch(const std::stop_token& over);
  bool hurries() const { return options_.hurries && options_.hurries(); }
  double answer_seconds() const;
  bool waits_too_long();
  void ask_all(const std::stop_token& over);
  bool only_stuck_are_left();

  Options options_;
  Run run_;
  std::chrono::steady_clock::time_point next_ask_ = {};
  std::jthread thread_;  // last: it uses the others
};

}  // namespace tokamak
