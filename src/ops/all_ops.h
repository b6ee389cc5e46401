// The list of all ops, for parsing and for tests that must cover every one. The build makes it of what the headers of
// ops/ declare in namespace op (cmake/list_ops.cmake), so there is nothing to add to.
#pragma once

#include "graph/op_def.h"

namespace tokamak {

/// Sorted by name.
std::span<const OpDef* const> all_ops();

/// Null when there is no op of that name.
const OpDef* find_op(std::string_view name);

}  // namespace tokamak
