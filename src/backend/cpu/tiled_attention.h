// Attention and its gradient with products of bf16 (backend/cpu/bf16_tiles.h) instead of f32: what attention.h has, of
// bf16 tensors on CPUs with such units. Softmax, its gradient and all sums are in f32; probabilities and the gradients
// of scores are rounded to bf16 before the products. Blocks of queries and keys are as there, but scores lie
// transposed, keys by queries, so that the softmax goes along lanes. Deterministic as attention.h says. Its twin is
// attention<Bf16>; tests: tests/backend/cpu/tiled_attention_test.cpp.
#pragma once

#include "backend/cpu/attention.h"
#include "backend/cpu/bf16_tiles.h"
#include "backend/cpu/simd.h"

namespace tokamak::cpu {

/// Whether these have the shape: its scale must be positive.
bool has_tiled_attention(const AttentionShape& shape);

/// Bytes of workspace at `threads` threads.
size_t tiled_attention_workspace_bytes(const AttentionShape& shape, int threads);
size_t tiled_attention_grad_workspace_bytes(const AttentionShape& shape, int threads);

/// As attention() and attention_grad(), with these units.
void tiled_attention(const TileUnits& units, const AttentionShape& shape, const AttentionDropout& dropout,
                     const int32_t* documents, const Bf16* qkv, Bf16* out, float* lse, void* workspace,
                     const Bf16* kv = nullptr);
void tiled_attention_grad(const TileUnits& units, const AttentionShape& shape, const AttentionDropout& dropout,
                          const int32_t* documents, const Bf16* qkv, const Bf16* out, const float* lse,
                          const Bf16* dout, Bf16* dqkv, void* workspace, const Bf16* kv = nullptr, Bf16* dkv = nullptr);

}  // namespace tokamak::cpu
