// Whether two groups can be one, and what that one computes. Tests: tests/passes/fuse_test.cpp
#pragma once

#include "passes/group_core.h"

namespace tokamak {

/// Producer and consumer as one core over a common space, with the results of both (the producer's first); nothing when
/// no template holds both.
std::optional<GroupCore> combine_cores(const GroupCore& producer, const GroupCore& consumer);

/// Whether the group only makes numbers from their index (a constant, an iota, a causal mask of two): cheaper to make
/// again than to read.
bool is_generator(const GroupCore& core);

/// The consumer with the generator's value made inside it; nothing when the index cannot be told there.
std::optional<GroupCore> inline_generator(const GroupCore& generator, const GroupCore& consumer);

/// A row group and a column group over the same matrix as a row group that also sums over rows; the column group may
/// read what the row group makes, not the other way round. Nothing where the form does not allow it.
std::optional<GroupCore> combine_row_column(const GroupCore& row, const GroupCore& column);

}  // namespace tokamak
