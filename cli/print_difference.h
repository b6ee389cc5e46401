// Differences of tensors as a table.
#pragma once

#include "checkpoint/compare_checkpoints.h"

namespace tokamak {

/// A line for each tensor that differs, or with `all` for each, and one that counts.
void print_difference(const CheckpointDifference& difference, bool all);

}  // namespace tokamak
