// fuse: merges groups, so that values between them never reach memory.
//
// A producer joins its consumer when both work on the same matrix: flat into anything, row into row and flat (a group
// with row reductions never meets one with column reductions). Reshapes between them are looked through. A producer
// that others read too keeps its value as one more result of the merged group, unless it is so cheap that every reader
// computes it again. Before that, matmuls take the bias and a pointwise function.
//
//   %1 = flat { add }, %2 = row { softmax of %1 }   ->   %1 = row { add, softmax }
//   %1 = matmul, %2 = flat { %1 + bias }            ->   %1 = fused_matmul { matmul, add }
//
// On targets with kernels for it, sums over the rows then join a row group that has what they read at hand
// (ops/group_form.h): gradients of gains and biases with the gradient of a norm.
//
// Exact: the same ops on the same numbers, each rounded as if it were stored; so on the CPU, bit for bit. A GPU's
// kernels add a bias before they round a product to 16 bits, and products to a sum without rounding them. Expects
// groups made by form_groups. Tests: tests/passes/fuse_test.cpp, tests/run/same_bits_test.cpp
#pragma once

#include "passes/pass.h"

namespace tokamak {

class GroupUnits;

bool fuse(Graph& graph, const PassContext& context);

/// The part of fuse that is about matmuls. What a matmul takes in, of the forms in ops/matmul_form.h (f: any pointwise
/// function that groups after each other are; mm: the product):
///
///   mm + bias                                                          target.matmul_bias
///   f(mm + bias)                                                       and matmul_function
///   mm + bias and f of that, both stored                               and matmul_argument
///   f(mm, x)             x: a matrix; not their sum alone              target.matmul_operand
///   that, and the sums of its rows in f32                              and matmul_operand_sums
///   mm as f32            where no group reads it: that would cast what it reads by itself
///                                                                      target.matmul_accumulate
///   x + mm               x: an argument that is updated to the sum, in place     the same
///
/// A form that kernels->takes_matmul refuses, or whose kernel_key is in tuning.slow_forms, is left out for the next
/// simpler one. The sum is stored beside f of it also where nothing else reads it and there is no f(mm + bias): so it
/// is in the forward pass when the backward pass computes it again, which must give the same bits.
bool fuse_matmul_epilogues(Graph& graph, const PassContext& context);

/// The part of fuse that is about column sums: a column group joins a row group over the same matrix that makes or
/// reads what it reads. One of what comes from another stage of a pipeline becomes a row group by itself. Tests:
/// tests/passes/fuse_columns_test.cpp
bool fuse_column_sums(GroupUnits& units);

}  // namespace tokamak
