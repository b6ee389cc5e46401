// Attention that never stores T x T: blocks of queries against blocks of keys, with an online softmax (Dao et al.,
// "FlashAttention", 2022). Works on the packed projection as it lies, in f32 or bf16 storage with f32 maths.
// Legend: B batch, T time, H heads, D head_dim, C = H * D; qkv is (B, T, 3C) with q | k | v. documents (B, T), unless
// it is null, gives the first position of each one's document: a position attends to its own document alone, and blocks
// that are wholly in others are skipped.
// Deterministic: every output element is written by one thread, in one order for any number of threads.
// Tests: tests/backend/cpu/attention_test.cpp.
#pragma once

#include "ops/element_place.h"
#include "ops/zigzag.h"

#include <cstddef>
#include <cstdint>

namespace tokamak::cpu {

struct AttentionShape {
  int64_t batch = 1, time = 1, heads = 1, head_dim = 1;
  bool causal = true;
  float scale = 1;
  /// Of several ranks, whose rows of each sample `time` are: causal, with keys and values of their own.
  int64_t ranks = 1, coordinate = 0;

  int64_t width() const { return heads * head_dim; }
  ZigZag zigzag() const { return {time, ranks, coordinate}; }
};

/// Dropout of probabilities: MatrixRandom(key, random_stream, T) says by the number of (place(b * H + h), i, j) whether
/// probability (b, h, i, j) is dropped with chance p, and what the others are scaled by. p = 0: no dropout. Of several
/// ranks T, i and j are of the whole sequence.
struct AttentionDropout {
  float p = 0;
  uint64_t key = 0, random_stream = 0;
  ElementPlace place;
};

/// Bytes of workspace that the forward and the backward pass need at `threads` threads.
size_t attention_workspace_bytes(const AttentionShape& shape, int threads);
size_t attention_grad_workspace_bytes(const AttentionShape& shape, int threads);

/// out (B, T, C) = softmax(scale q k^T) v per head, and lse (B, H, T), the log of each softmax's normaliser.
/// T is float or Bf16 here and below. With several ranks N, kv (N B, T, 2C) has all keys and values.
template <typename T>
void attention(const AttentionShape& shape, const AttentionDropout& dropout, const int32_t* documents, const T* qkv,
               T* out, float* lse, void* workspace, const T* kv = nullptr);

/// dqkv (B, T, 3C) from dout (B, T, C); out and lse are those of the forward pass. With several ranks dqkv is that of q
/// alone, (B, T, C), and dkv what this rank's queries add to that of kv.
template <typename T>
void attention_grad(const AttentionShape& shape, const AttentionDropout& dropout, const int32_t* documents,
                    const T* qkv, const T* out, const float* lse, const T* dout, T* dqkv, void* workspace,
                    const T* kv = nullptr, T* dkv = nullptr);

/// A step of generation: stores the k and v of each row's `time` new tokens in qkv in cache (B, capacity, 2C), k | v,
/// behind the positions[b] tokens that lie there, and attends causally over all of them, or with a window over the last
/// so many. A token that has no place
/// there is not stored, and its output is NaN. Needs no workspace and no dropout.
template <typename T>
void attention_decode(const AttentionShape& shape, const int32_t* positions, int64_t capacity, const T* qkv, T* cache,
                      T* out, int64_t window = 0);

}  // namespace tokamak::cpu
