// Progress on standard error: one line that is rewritten on a terminal, a line for each new phase in a log.
#pragma once

#include <chrono>
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

 private:
  bool terminal_;
  std::string phase_;
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace tokamak
