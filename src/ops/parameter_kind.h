// Parameters that are alike in all blocks, and so are the products that read them. Tests:
// tests/ops/parameter_kind_test.cpp
#pragma once

#include "graph/graph.h"

#include <set>
#include <string>

namespace tokamak {

/// "attn.c_attn.weight" of "h.0.attn.c_attn.weight": blocks are alike.
std::string without_block(const std::string& parameter);

/// "attn.c_attn" of "h.0.attn.c_attn.weight", and of its bias; "wte" of "wte.weight".
std::string kind_of(const std::string& parameter);

/// The kinds of the parameters that a value is a form of: a copy, a view, what ranks gather, several side by side.
std::set<std::string> kinds_behind(const Graph& graph, ValueId value);

}  // namespace tokamak
