// Which arguments of a step are cut over a mesh, and where: docs/parallel.md has the table. It is a function of their
// specs and the mesh alone, so that all programs of a run agree. Tests: tests/passes/seed_cuts_test.cpp.
#pragma once

#include "passes/pass.h"

#include <map>

namespace tokamak {

/// Inputs (B, T, ...) over data and context; matrices by their roles over tensor; and over data and context, on top of
/// that, what an optimizer keeps of a parameter (zero >= 1), sums of gradients (2) and parameters (3, or gathers_once).
/// Without that cut, and without slots, a rank's sums of gradients are terms over data.
/// What an axis's size does not divide stays whole. With slots ZeRO cuts dim 0 alone, where norms have their pieces;
/// and where a data rank has inputs of its own, context alone cuts them.
std::map<ValueId, std::vector<Cut>> seed_cuts(const Graph& graph, const PassContext& context);

/// Of a parameter that ZeRO is to cut by a mesh whose sizes divide none of its dims: a number of rows of which a
/// multiple can be cut. 1 where there is nothing to add, or rows are no help: with slots, which fix
/// where norms have their pieces, where an update reads all of the parameter, and where tensor cuts rows.
int64_t undivided_parts(const Graph& graph, const Argument& parameter, const PassContext& context);

/// What the blocks of a model add up (B, T, C), each as what is still to be summed over tensor: cut over that axis as
/// well, so that between the blocks no rank has all of it. Along B, whose parts lie side by side in memory; along T
/// where the axis, with data, does not divide B.
std::map<ValueId, std::vector<Cut>> seed_residual(const Graph& graph, const Mesh& mesh, bool own_inputs = false);

/// Whether parameters that the axis cuts are meant to stay so. Those that the others cut are gathered where they are
/// used.
bool keeps_parameters_cut(std::string_view axis);

}  // namespace tokamak
