// When the stages of a pipeline do what, by what its programs and transfers take. Tests:
// tests/plan/pipe_timeline_test.cpp.
#pragma once

#include "plan/pipe_schedule.h"

#include <optional>

namespace tokamak {

/// Seconds of the programs of one chunk. `backward` is that of both parts in one program; `last` that of the last one
/// of its stage, where it takes other than all before.
struct ChunkSeconds {
  double forward = 1, backward = 2, backward_input = 1, backward_weight = 1;
  std::optional<double> last = {};
};

/// One bar of a picture.
struct PipeSpan {
  int64_t stage = 0;
  double start = 0, end = 0;  // seconds from the beginning of the step
  PipeAction action;          // no transfer
};

struct PipeTimeline {
  std::vector<PipeSpan> spans;  // by stage, each in order of time
  std::vector<double> ends;     // by stage
  double seconds = 0;           // to the end of the last of them
  double bubble = 0;            // share of stages x seconds in which a stage waits

  /// The most micro-batches, each of a chunk of its own, that a stage holds activations of.
  std::vector<int64_t> in_flight;
};

/// An action begins when its stage has done the one before and what it reads has come; a transfer takes `transfer`
/// seconds, in which neither stage is busy. `chunks` by chunk. InternalError when the stages wait for each other.
PipeTimeline simulate_pipe(const PipeSchedule& schedule, const std::vector<ChunkSeconds>& chunks, double transfer);

/// A bar's label: "F3", "B0", with several chunks a stage "F3.1"; I and W are the two parts of a backward pass.
std::string pipe_label(const PipeSchedule& schedule, const PipeAction& action);

}  // namespace tokamak
