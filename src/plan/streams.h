// Which launches run beside the others, on a second stream, and how long each may take there. Pure, and right for any
// choice: what orders the streams is plan/stream_order.h. Tests: tests/plan/streams_test.cpp.
#pragma once

#include "graph/graph.h"

#include <vector>

namespace tokamak {

struct Launch;

/// By node.
struct StreamSchedule {
  std::vector<int> stream;  // 0 or 1
  std::vector<int> done;    // node of stream 0 with which the node is taken to be done; on stream 0: itself
};

/// Stream 1 gets what the backward pass only hands to the update: gradients of weights, biases and tables, and what is
/// made of them alone. Their operands stay in place until they should be done, at the pace that both streams get equal
/// shares of the device: when stream 0 has done as much by the launches' seconds, or reads what they made.
StreamSchedule schedule_streams(const Graph& graph, const std::vector<Launch>& launches, int streams);

}  // namespace tokamak
