// Whether two groups can be one, and what that one computes. Tests: tests/passes/fuse_test.cpp
#pragma once

#include "ops/group_body.h"

#include <optional>

namespace tokamak {

/// Producer and consumer as one group over a common space, with the results of both (the producer's first); nothing
/// when no template holds both.
std::optional<GroupBody> combine_groups(const GroupBody& producer, const GroupBody& consumer);

/// Whether the group only makes numbers from their index (a constant, an iota, a causal mask of two): cheaper to make
/// again than to read.
bool is_generator(const GroupBody& group);

/// The consumer with the generator's value made inside it; nothing when the index cannot be told there.
std::optional<GroupBody> inline_generator(const GroupBody& generator, const GroupBody& consumer);

/// Whether all its reductions are sums.
bool only_sums(const GroupBody& group);

/// A row group and a column group over the same matrix as a row group that also sums over rows; the column group may
/// read what the row group makes, not the other way round. Nothing where the form does not allow it.
std::optional<GroupBody> combine_row_column(const GroupBody& row, const GroupBody& column);

}  // namespace tokamak
