// merge_float8: parameters get their eight bits in one kernel over all of them, at the start of the step, with their
// scales.
//
//   %a = cast(p0) {to="bf16"}
//   %b, %c = float8_weights(%a) {stored=[2]}              %b, %c, %e, %f, %g = float8_weights(p0, %d) {stored=[2,3]}
//   %d = cast(p1) {to="bf16"}, which others read, too  ->
//   %e, %f, %g = float8_weights(%d) {stored=[3]}
//
// A copy in bf16 that is there for others, and made before, is read, as it is half as large; else the parameter itself,
// with the same bits. Only in graphs with a backward pass and where the copies are kept in states, as elsewhere each
// would die with its reader, and not what the backward pass makes again. What is made of parts that ranks gather stays,
// too. Exact. Tests: tests/passes/merge_float8_test.cpp
#pragma once

#include "passes/pass.h"

#include <vector>

namespace tokamak {

bool merge_float8(Graph& graph, const PassContext& context);

/// By value, whether it is a parameter's copy in bf16 that nothing but merge_float8 reads, which does without it.
std::vector<bool> find_copies_for_float8(const Graph& graph);

}  // namespace tokamak
