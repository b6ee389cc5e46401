// A forward pass over a batch in two halves, node by node in turn: nothing of one depends on the other, so one can
// compute while ranks exchange what the other needs (passes/overlap_halves.h). Tests: tests/passes/halves_test.cpp.
#pragma once

#include "graph/graph.h"

namespace tokamak {

/// `half` is forward_graph of half the sequences, without dropout. Inputs (B, ...) of the new graph are twice as long,
/// and the loss is that of both. Of the sequences of each of `ranks`, which lie one after the other, the first half
/// of the graph has the first half.
Graph in_halves(const Graph& half, int64_t ranks);

/// Whether so many sequences of a rank can be: both halves lie over tensor ranks as the whole would.
bool can_be_halved(int64_t sequences, int64_t tensor_ranks);

/// By node: 1, what only the first half's inputs have gone into, 2, the second's, 3, both; 0 what neither has. All
/// zero where a graph is not in halves.
std::vector<int> find_halves(const Graph& graph);

}  // namespace tokamak
