// Chooses offsets for blocks whose sizes and lifetimes are known, so that the arena is as small as can be found
// quickly. Tests: tests/plan/arena_test.cpp.
#pragma once

#include "plan/plan.h"

namespace tokamak {

/// Sets every offset, a multiple of kArenaAlignment, so that blocks alive at one time share no byte; returns the
/// arena's size. Places greedily into the tightest gap, in a few orders, and keeps the best: the problem is NP-hard.
int64_t place_blocks(std::vector<Block>& blocks);

/// Bytes alive at every node, and after the last, each block rounded up to kArenaAlignment.
std::vector<int64_t> live_bytes(const std::vector<Block>& blocks, int num_nodes);

}  // namespace tokamak
