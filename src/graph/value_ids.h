// Values of a graph, and lists of them.
#pragma once

#include "base/short_list.h"

namespace tokamak {

/// A value of a graph, by its number.
using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

/// Operands or outputs of a node; four take no more room than a std::vector does.
using ValueIds = ShortList<ValueId, 4>;

}  // namespace tokamak
