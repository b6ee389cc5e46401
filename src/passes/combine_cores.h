// Whether two groups can be one, and what that one computes. Tests: tests/passes/fuse_test.cpp
#pragma once

#include "passes/group_core.h"

namespace tokamak {

/// Producer and consumer as one core over a common space, with the results of both (the producer's first); nothing when
/// no template holds both.
std::optional<GroupCore> combine_cores(const GroupCore& producer, const GroupCore& consumer);

/// Whether the group only makes numbers from their index (constant, iota): cheaper to make again than to read.
bool is_generator(const GroupCore& core);

/// The consumer with the generator's value made inside it; nothing when the index cannot be told there.
std::optional<GroupCore> inline_generator(const GroupCore& generator, const GroupCore& consumer);

}  // namespace tokamak
