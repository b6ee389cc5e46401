// What a stage of a pipeline gives to the next one: a single tensor. Where later blocks read more of earlier ones than
// the residual stream, as skip connections do or the embeddings, all of it side by side in the last dim.
// Tests: tests/compile/stage_border_test.cpp.
#pragma once

#include "graph/graph.h"

#include <cstdint>
#include <optional>

namespace tokamak {

/// The graph of a forward pass in which result block_result(block) is all that nodes behind that block read of what
/// stands before its end; what depends on no parameter, or on nothing but parameters, is made anew there. None where
/// that is what the block gives, as it stands.
std::optional<Graph> joined_at_end(const Graph& forward, int64_t block);

}  // namespace tokamak
