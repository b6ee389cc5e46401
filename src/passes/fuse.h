// fuse: merges groups, so that values between them never reach memory.
//
// A producer joins its consumer when both work on the same matrix: flat into anything, row into row and flat (a group
// with row reductions never meets one with column reductions). Reshapes between them are looked through. A producer
// that others read too keeps its value as one more result of the merged group, unless it is so cheap that every reader
// computes it again. Before that, matmuls take the bias, and GELU where nothing else reads what it is applied to.
//
//   %1 = group flat { add }, %2 = group row { softmax of %1 }   ->   %1 = group row { add, softmax }
//   %1 = matmul, %2 = group flat { %1 + bias }                  ->   %1 = group matmul { matmul, add }
//
// Exact: the same ops on the same numbers. Expects groups made by form_groups. Tests: tests/passes/fuse_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

bool fuse(Graph& graph, const PassContext& context);

/// The part of fuse that is about matmuls.
bool fuse_matmul_epilogues(Graph& graph, const PassContext& context);

}  // namespace tokamak
