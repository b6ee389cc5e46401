// Which blocks of the arena are to lie side by side, so that a collective of many tensors sends a few large messages.
// Tests: tests/plan/neighbours_test.cpp.
#pragma once

#include "plan/storage.h"

namespace tokamak {

/// Rows of blocks, by index, in the order of an all_reduce's operands or of its results: those that have a block for
/// themselves. No block is in two rows.
std::vector<std::vector<int>> find_neighbours(const Graph& graph, const StorageMap& storage);

/// place_blocks() with each row as one piece, each of its blocks at a multiple of kArenaAlignment behind the one
/// before; all are taken from when the first is needed until the last is no longer.
int64_t place_blocks_side_by_side(std::vector<Block>& blocks, const std::vector<std::vector<int>>& rows);

}  // namespace tokamak
