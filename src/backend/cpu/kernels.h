// Makers of the CPU kernels, listed in cpu_backend.cpp.
#pragma once

#include "backend/backend.h"

namespace tokamak::cpu {

std::unique_ptr<Kernel> make_transpose_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_slice_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_pad_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_concat_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_embedding_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_embedding_grad_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_sum_squares_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_multi_add_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_multi_adamw_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_adamw8bit_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_multi_cast_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_float8_scales_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_float8_weights_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_matmul_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_attention_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_attention_grad_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_attention_decode_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_rotary_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_rotary_grad_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_sample_token_kernel(const Graph& graph, const Node& node);

/// Whether there is a kernel for a node of the op; where there is none its maker must not be called.
bool has_attention(const Graph& graph, const Node& node);
bool has_attention_decode(const Graph& graph, const Node& node);
bool has_attention_grad(const Graph& graph, const Node& node);
bool has_rotary(const Graph& graph, const Node& node);  // and its gradient, packed or not
bool has_sample_token(const Graph& graph, const Node& node);
bool has_matmul(const Graph& graph, const Node& node);
/// The same of any node.
bool has_kernel(const Graph& graph, const Node& node);

/// What workspace_bytes() of the node's kernel is with `threads` threads, without making it.
int64_t matmul_scratch(const Graph& graph, const Node& node, int threads);
int64_t attention_scratch(const Graph& graph, const Node& node, int threads);
int64_t attention_grad_scratch(const Graph& graph, const Node& node, int threads);
/// The same of any node.
int64_t scratch_bytes(const Graph& graph, const Node& node, int threads);

}  // namespace tokamak::cpu
