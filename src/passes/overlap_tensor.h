// overlap_tensor: in the backward pass, what goes between the ranks of axis `tensor` runs beside products for weights,
// which wait for it. Of the gradient of one block's input, which the block below needs whole:
//
//   %1 = matmul(...)  for a weight             %3 = reduce_scatter(%2)
//   %3 = reduce_scatter(%2)                    %1 = matmul(...)  for a weight, while %3 is under way
//   %4 = matmul(...)  for a weight      ->     %5 = layer_norm_grad(%3, ...)
//   %5 = layer_norm_grad(%3, ...)              %6 = all_gather(%5)
//   %6 = all_gather(%5)                        %4 = matmul(...)  for a weight, while %6 is under way
//   %7 = matmul(%6, ...)                       %7 = matmul(%6, ...)
//
// At most three products wait at a time, as they keep their operands in memory. What they give is sent over other axes
// when the stream has next been gathered, not before it. It decides the order of collectives, the
// same for all ranks. Exact. Tests: tests/passes/overlap_tensor_test.cpp.
#pragma once

#include "passes/pass.h"

#include <span>

namespace tokamak {

inline constexpr size_t kMostWaitingProducts = 3;
inline constexpr size_t kMostUnsentGradients = 8;  // of products that did not wait, or no longer
inline constexpr double kLeastShareOfWait = 0.25;  // that must be left of a wait for another product to be taken

/// Of products that wait, by their seconds: the shortest that lasts for `rest`, else the longest.
size_t choose_product(std::span<const double> seconds, double rest);

bool overlap_tensor(Graph& graph, const PassContext& context);

}  // namespace tokamak
