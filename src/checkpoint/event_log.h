// events.jsonl: what happened to a run, over all its starts, one JSON object a line; and how much of the time that took
// went into steps. Tests: tests/checkpoint/event_log_test.cpp.
#pragma once

#include "base/file.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tokamak {

struct RunEvent {
  /// A start of the program, a checkpoint, an end with all steps done, a stop that was asked for, an error, the
  /// decision to start again after one, or products that go on in bf16 (run/shadow.h).
  enum class Kind { kStart, kSave, kEnd, kStop, kFailure, kRestart, kFallback };
  struct Rank {
    std::string host, device;
    bool operator==(const Rank&) const = default;
  };

  Kind kind = Kind::kStart;
  double time = 0;           // seconds since the epoch
  int64_t step = 0;          // the last that is done
  std::string checkpoint;    // of a save: its folder's name
  double seconds = 0;        // that a save took until it was whole and on the disk
  double stall_seconds = 0;  // in which no step ran for it
  int64_t bytes = 0;         // of its files
  double step_seconds = 0;   // of a save: of the steps since the last one or the start, without waits for data
  std::string cause;         // of a failure or a restart; of a fallback: kinds of weights
  std::vector<Rank> ranks;   // of a start
  bool operator==(const RunEvent&) const = default;
};

/// One line of JSON without its newline, and back; nothing where it is no event.
std::string format_event(const RunEvent& event);
std::optional<RunEvent> parse_event(std::string_view line);

/// All events of a run, in order; lines that are none are left out. Empty where there is no such file, or none
/// that can be read.
std::vector<RunEvent> read_events(const std::filesystem::path& run);

/// Appends to a run's file. Of a process that has the run's lock.
class EventLog {
 public:
  /// Opens the file, and drops what a killed process left of a line. What cannot be written is told by warning() alone:
  /// no run ends for it.
  explicit EventLog(const std::filesystem::path& run);

  /// Writes the line at once, with the time of now where it has none, and syncs it.
  void add(RunEvent event);
  /// Why lines are missing; empty: none are.
  const std::string& warning() const { return warning_; }

 private:
  std::filesystem::path path_;
  FileDescriptor fd_;
  std::string warning_;
};

/// How the time of a run was spent.
struct Goodput {
  double step_seconds = 0;  // of steps whose outcome is saved
  double wall_seconds = 0;  // of all starts, and between those of which one failed or was killed and the next
  int64_t starts = 0;
  double share() const { return wall_seconds > 0 ? step_seconds / wall_seconds : 0; }
};
/// `now`: in seconds since the epoch, where the run still goes on.
Goodput goodput_of(const std::vector<RunEvent>& events, double now);

/// "goodput 93.1%: 812 s of saved steps in 872 s, 3 starts"
std::string format_goodput(const Goodput& goodput);

}  // namespace tokamak
