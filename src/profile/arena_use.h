// How much of a plan's arena is taken when. Tests: tests/profile/arena_use_test.cpp.
#pragma once

#include "plan/plan.h"

#include <vector>

namespace tokamak {

/// By node: bytes of the blocks that are taken while it runs.
std::vector<int64_t> arena_use(const Plan& plan);

/// "h.3.mlp" of what a block holds first: its value's name, or the op and type that make it.
std::string block_label(const Plan& plan, const Block& block);

}  // namespace tokamak
