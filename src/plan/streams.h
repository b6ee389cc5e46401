// Which launches run beside the others, on a second stream, and how long each may take there. Pure, and right for any
// choice: what orders the streams is plan/stream_order.h. Tests: tests/plan/streams_test.cpp.
#pragma once

#include "plan/plan.h"

namespace tokamak {

struct StreamSchedule {
  std::vector<PlannedStream> streams;
  std::vector<int> stream;  // by node: index into streams
  std::vector<int> done;    // by node: node of stream 0 with which it is taken to be done; on stream 0: itself
};

/// One stream, "compute", and with `streams` > 1 a second, "side", if there is something for it; both end with the run.
/// The second gets what the backward pass only hands to the update: gradients of weights, biases and tables, and what
/// is made of them alone, without effects. Their operands stay in place until they should be done, at the pace that
/// both streams get equal shares of the device: when stream 0 has done as much by the launches' seconds, or reads what
/// they made.
StreamSchedule schedule_streams(const Graph& graph, const std::vector<Launch>& launches, int streams);

}  // namespace tokamak
