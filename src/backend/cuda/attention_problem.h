// What an attention or attention_grad node asks for, in the terms of its kernels.
// Legend: B batch, T time, H heads, D head_dim, C = H * D; qkv is (B, T, 3C) with q | k | v.
#pragma once

#include "graph/graph.h"

#include <compare>
#include <vector>

namespace tokamak::cuda {

struct AttentionProblem {
  int64_t batch = 1, time = 1, heads = 1, head_dim = 1;
  DType dtype = DType::kF32;  // of qkv, out and their gradients; lse is f32
  bool causal = true;
  double scale = 1;
  double dropout = 0;
  int64_t stream = 0;          // of dropout's random numbers
  bool any_order = false;      // of the gradient's sums
  bool documents = false;      // the last input gives the first position of each one's document
  bool sums = false;           // the gradient gives its sums over batch and time as well
  std::vector<int64_t> place;  // where a part's heads, numbered over batch and heads, are: ops/element_place.h

  int64_t width() const { return heads * head_dim; }
  auto operator<=>(const AttentionProblem&) const = default;
};

}  // namespace tokamak::cuda
