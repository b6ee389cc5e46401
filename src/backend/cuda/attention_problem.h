// What an attention or attention_grad node asks for, in the terms of its kernels.
// Of several ranks it is causal, without sums, and inputs are qkv, kv, the coordinate and what else attention reads.
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
  int64_t random_stream = 0;   // of dropout
  bool any_order = false;      // of the gradient's sums
  bool documents = false;      // the last input gives the first position of each one's document
  bool sums = false;           // the gradient gives its sums over batch and time as well
  bool float8 = false;         // as said by the attribute of attention and of attention_grad
  std::vector<int64_t> place;  // where a part's heads, numbered over batch and heads, are: ops/element_place.h
  int64_t ranks = 1;           // that have rows of each sample, this one `time` of them: ops/context_attention.h

  int64_t width() const { return heads * head_dim; }
  int64_t keys() const { return time * ranks; }                        // of a sample
  int64_t key_width() const { return (ranks > 1 ? 2 : 3) * width(); }  // of the tensor that they are in
  size_t first() const { return ranks > 1 ? 3 : 1; }                   // input behind those of keys
  auto operator<=>(const AttentionProblem&) const = default;
};

}  // namespace tokamak::cuda
