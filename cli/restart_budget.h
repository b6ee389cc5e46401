// When a run that has died may start again, and what is told of its end.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>

namespace tokamak {

inline constexpr int kLostRanksStatus = 75;  // EX_TEMPFAIL of sysexits.h: of a process that has lost other ranks
inline constexpr int kOurBugStatus = 70;     // EX_SOFTWARE

/// Of what waitpid tells: whether the process has died, or lost other ranks, rather than done what it was told or met a
/// user's mistake.
bool is_death(int status);

/// Why the run's newest start ended, by its events.jsonl; `otherwise` where that says nothing.
std::string cause_of_end(const std::filesystem::path& run, const std::string& otherwise);

/// The last step that the run's metrics.jsonl tells of; 0: none.
int64_t last_step_told(const std::filesystem::path& run);

/// When restarts were, and where the run died before.
class RestartBudget {
 public:
  RestartBudget(std::filesystem::path run, int64_t restarts) : run_(std::move(run)), restarts_(restarts) {}

  /// Notes a restart in the run's events.jsonl. UserError where the run should not begin again: it has died in the same
  /// step before (unless another machine, which is left out now, was the reason), or too often in an hour.
  void take(const std::string& cause, bool machine_is_left_out = false);

 private:
  std::filesystem::path run_;
  int64_t restarts_;
  std::deque<std::chrono::steady_clock::time_point> taken_;
  std::optional<int64_t> died_after_;
};

}  // namespace tokamak
