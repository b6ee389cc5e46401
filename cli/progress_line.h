// Progress on standard error: one line that is rewritten on a terminal, a line for each new phase in a log.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tokamak {

class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();  // takes the line away

  /// `total` is 0 where it is not known.
  void show(const std::string& phase, int64_t done, int64_t total);

  /// A sentence that stays.
  void note(const std::string& text);

  /// The same for bytes, with their speed in the last seconds and the time that is left.
  void show_bytes(const std::string& phase, int64_t done, int64_t total);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Sample {
    Time time;
    int64_t done = 0;
  };

  bool is_due(const std::string& phase);
  void print(const std::string& more);

  bool terminal_;
  std::string phase_;
  Time shown_;
  Sample before_, last_;  // two moments, some seconds apart
};

}  // namespace tokamak
