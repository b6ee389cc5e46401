// One node as a graph of its own: to measure its kernel apart from the rest, and to name what was measured.
#pragma once

#include "graph/graph.h"

namespace tokamak {

/// The node alone, of no phase but the first; its operands are inputs, its outputs results.
Graph single_node(const Graph& graph, const Node& node);

/// What decides how long the node's kernel takes: op, attributes, types, body. The text of single_node.
std::string kernel_key(const Graph& graph, const Node& node);

}  // namespace tokamak
