// Two arithmetic ops in one loop: out = second(first(a, b), c), without a pass over registers in between.
#pragma once

#include "graph/op_def.h"

namespace tokamak::cpu {

/// Operands a, b, c.
using ChainLoop = void (*)(std::span<const TileOperand>, int64_t n, float* out);

/// The loop for a pair of add, sub and mul; `position` says which operand of `second` the first's result is. Null when
/// there is none.
ChainLoop find_chain(const OpDef& first, const OpDef& second, int position);

}  // namespace tokamak::cpu
