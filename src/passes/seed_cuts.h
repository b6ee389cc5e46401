// Which arguments of a step are cut over a mesh, and where: docs/parallel.md has the table. It is a function of their
// specs and the mesh alone, so that all programs of a run agree. Tests: tests/passes/seed_cuts_test.cpp.
#pragma once

#include "passes/pass.h"

#include <map>

namespace tokamak {

/// Inputs (B, T, ...) over data and context, what stages of a pipeline give each other with mesh.sequence over tensor
/// as well, as between blocks; matrices by their roles over tensor; and over data and context, on top of that, what an
/// optimizer keeps of a parameter (zero >= 1), sums of gradients (2) and parameters (3, or gathers_once). Without that
/// cut, and without slots, a rank's sums of gradients are terms over data. What an axis's size does not divide stays
/// whole. With slots ZeRO cuts dim 0 alone, where norms have their pieces; and where a data rank has inputs of its own,
/// context alone cuts them.
std::map<ValueId, std::vector<Cut>> seed_cuts(const Graph& graph, const PassContext& context);

/// Rows of a parameter that ZeRO is to cut over `ranks`, whose number divides none of its dims: each of the `parts`
/// that tensor ranks have of them, 1 where these do not cut the rows. Ranks are 1 where there is nothing to add, or
/// rows are no help: with slots, which fix where norms have their pieces, where an update reads all of the parameter,
/// and for parts of tables (rows_multiple) or of what the optimizer keeps sums of.
struct Undivided {
  int64_t ranks = 1, parts = 1;
};
Undivided undivided_rows(const Graph& graph, const Argument& parameter, const PassContext& context);

/// Rows that a state has because they were added to its parameter (passes/pad_shards.h), behind so many parts of it;
/// none of those that pad_vocab adds to tables.
struct AddedRows {
  int64_t rows = 0, parts = 1;
};
AddedRows added_rows(const Graph& graph, const Argument& state);

/// Of the rows of a table that tensor ranks divide, what ZeRO needs a multiple of to divide each part; 1 where it does
/// not cut the table, or divides it as it is.
int64_t rows_multiple(const Graph& graph, const Argument& table, const PassContext& context);

/// What the blocks of a model add up (B, T, C), each as what is still to be summed over tensor: cut over that axis as
/// well, so that between the blocks no rank has all of it. Along B, whose parts lie side by side in memory; along T
/// where the axis, with data, does not divide B.
std::map<ValueId, std::vector<Cut>> seed_residual(const Graph& graph, const Mesh& mesh, bool own_inputs = false);

/// Whether parameters that the axis cuts are meant to stay so. Those that the others cut are gathered where they are
/// used.
bool keeps_parameters_cut(std::string_view axis);

}  // namespace tokamak
