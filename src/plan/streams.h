// Which launches run beside the others, on streams of their own, and how long each may take there. Pure, and right for
// any choice: what orders the streams is plan/stream_order.h. Tests: tests/plan/streams_test.cpp,
// communication_stream_test.cpp.
#pragma once

#include "plan/plan.h"

namespace tokamak {

struct StreamAssignment {
  std::vector<PlannedStream> streams;
  std::vector<int> stream;  // by node: index into streams
  std::vector<int> done;    // by node: node of stream 0 with which it is taken to be done; on stream 0: itself
};

/// What may have a stream of its own.
struct StreamChoice {
  bool side = false;
  bool communication = false;
};

/// One stream, "compute", and those that are allowed and needed; all end with the run.
/// "side" gets what the backward pass only hands to the update: gradients of weights, biases and tables, and what is
/// made of them alone, without effects. "communication" gets all collectives, in their order.
/// Operands of launches beside stream 0 stay in place until those should be done by the clock of the streams, on which
/// each waits for what makes its operands, and for a collective 2% of the run longer; or until stream 0 reads what they
/// made.
StreamAssignment assign_streams(const Graph& graph, const std::vector<Launch>& launches, StreamChoice choice);

}  // namespace tokamak
