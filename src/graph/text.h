// The text form of a graph, which parses back. Values are numbered arguments first, then in order of definition:
//
//   graph step {
//     input tokens = %0 : i32[2,8]
//     param wte.weight = %1 {global=[11,4], role="embedding"} : f32[16,4]
//     %2 = embedding(%1, %0) : f32[2,8,4]
//     %3 = mul(%2, %2) {name=1} #backward : f32[2,8,4]
//     result loss = %3
//     update %1 = %4
//   }
//
// An argument's spec (graph/argument_spec.h) is printed where it is not default_spec().
// A node with a body (a group) is followed by its body in braces, as a graph of its own.
#pragma once

#include "graph/graph.h"

#include <functional>

namespace tokamak {

std::string print(const Graph& graph);

/// One node as in print(), without body and line end; values keep the numbers they have in the graph.
std::string print(const Graph& graph, const Node& node);

/// Finds an op's record by name; null when there is none (ops/all_ops.h has the one of all ops).
using OpLookup = std::function<const OpDef*(std::string_view)>;

/// Inverse of print(). Throws UserError with the line number for text that is not a graph. The result is verified.
Graph parse_graph(std::string_view text, const OpLookup& lookup);

}  // namespace tokamak
