// The list of all ops, for parsing and for tests that must cover every one.
#pragma once

#include "graph/op_def.h"

namespace tokamak {

std::span<const OpDef* const> all_ops();

/// Null when there is no op of that name.
const OpDef* find_op(std::string_view name);

}  // namespace tokamak
