// Attention by the project's own kernels (kernels/attention*.cu): any time, dropout, documents, f32, bf16 and f16, with
// sums in f32. Slower than cuDNN's. T x T is never stored. Tests: tests/backend/cuda/attention_test.cpp.
#pragma once

#include "backend/cuda/attention_problem.h"
#include "backend/cuda/kernel_start.h"
#include "backend/cuda/kernels.h"

#include <string>

namespace tokamak::cuda {

/// Rows of a tile, for `shared_bytes` of shared memory per block: 64, 32 or 16; 0 when head_dim is too large.
int attention_block(int64_t head_dim, int64_t shared_bytes);

/// Scratch memory of the gradient.
int64_t blocked_grad_scratch_bytes(const AttentionProblem& problem);

/// Device code of the functions attention; attention_delta, attention_grad_q and attention_grad_kv.
std::string attention_source(const AttentionProblem& problem, int block);
std::string attention_grad_source(const AttentionProblem& problem, int block);

/// Device code of the functions append_to_cache, attend_to_cache, decode_one and combine_splits. What may be read early
/// are the cache and the position.
std::string attention_decode_source(DType dtype, DType cache, int64_t head_dim, const KernelStart& start = {});
/// Whether a kernel of the graph makes qkv, and none but the node itself changes the cache, and none the position
/// before it. As reads_weights_early().
bool reads_cache_early(const Graph& graph, const Node& node);
/// Whether the kernel can be a link of a chain in which qkv may be awaited.
bool decode_can_chain(const Graph& graph, const Node& node);
KernelPtr make_decode_link(Context& context, const Graph& graph, const Node& node, const ChainLink& link);

/// inputs: qkv[, rng][, documents], outputs: out (B, T, C), lse (B, H, T). Null when head_dim is too large for the
/// device.
KernelPtr make_blocked_attention(Context& context, const AttentionProblem& problem);
/// inputs: qkv, out, lse, dout[, rng][, documents], outputs: dqkv (B, T, 3C). Null as above.
KernelPtr make_blocked_attention_grad(Context& context, const AttentionProblem& problem);

}  // namespace tokamak::cuda
