// pad_shards: adds rows of zeros to parameters that ZeRO would cut but whose dims its ranks do not divide, so that
// every rank has an equal share of them.
//
//   param w : f32[7,4]              with data 3      param w {global=[7,4]} : f32[9,4]
//   %2 = matmul(x, w)                     ->         %2 = first_rows(w) {rows=7} : f32[7,4]
//                                                    %3 = matmul(x, %2)
//
// Where tensor ranks cut the rows, each part of them has rows of zeros behind it, and first_rows says how many parts
// there are. Of tables of the vocabulary pad_vocab adds rows to all.
// Before differentiation, so that gradients and what the optimizer keeps have these rows as well, all zeros.
// Exact, but for the order of sums. Tests: tests/passes/pad_shards_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool pad_shards(Graph& graph, const PassContext& context);

/// The graph with the first rows of a parameter taken just before each node that reads them, in its phase: so that a
/// parameter is gathered for the forward and for the backward pass. For `shard`.
Graph with_rows_where_read(const Graph& graph);

}  // namespace tokamak
