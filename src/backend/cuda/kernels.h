// Makers of the backend's kernels, listed in kernel_table.cpp.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/context.h"

namespace tokamak::cuda {

using KernelPtr = std::unique_ptr<Kernel>;

/// The kernel of any node.
KernelPtr make_kernel(Context& context, const Graph& graph, const Node& node);
/// Begins to compile what device code it will have, where that takes long. Needs no device.
void compile_ahead(Context& context, const Graph& graph, const Node& node);
/// What its workspace_bytes() will be, told without a device. What libraries decide is expected from what they did:
/// cuDNN's gradient as seen on Hopper, cuBLASLt's matmuls at most as they were seen.
int64_t scratch_bytes(const DeviceInfo& info, const Graph& graph, const Node& node);

KernelPtr make_attention_kernel(Context& context, const Graph& graph, const Node& node);
KernelPtr make_attention_grad_kernel(Context& context, const Graph& graph, const Node& node);
KernelPtr make_attention_decode_kernel(Context& context, const Graph& graph, const Node& node);
KernelPtr make_classifier_kernel(Context& context, const Graph& graph, const Node& node);
/// Begins to compile the device code of attention or its gradient, if that has any of ours.
void compile_attention_ahead(Context& context, const Graph& graph, const Node& node);
/// Begins to compile its device code.
void compile_classifier_ahead(Context& context, const Graph& graph, const Node& node);
KernelPtr make_concat_kernel(Context& context, const Graph& graph, const Node& node);
KernelPtr make_embedding_kernel(Context& context, const Graph& graph, const Node& node);
KernelPtr make_embedding_grad_kernel(Context& context, const Graph& graph, const Node& node);
/// The reference where the device has no floats of eight bits.
KernelPtr make_float8_weights_kernel(Context& context, const Graph& graph, const Node& node);
void compile_float8_weights_ahead(Context& context, const Graph& graph, const Node& node);
KernelPtr make_float8_scales_kernel(Context& context, const Graph& graph, const Node& node);
void compile_float8_scales_ahead(Context& context, const Graph& graph, const Node& node);
/// flat, row and column.
KernelPtr make_group_kernel(Context& context, const Graph& graph, const Node& node);
/// matmul and fused_matmul; the reference in number formats that no kernel knows.
KernelPtr make_matmul_kernel(Context& context, const Graph& graph, const Node& node);
/// Begins to compile its device code, where there is any.
void compile_matmul_ahead(Context& context, const Graph& graph, const Node& node);
KernelPtr make_multi_add_kernel(Context& context, const Graph& graph, const Node& node);
void compile_multi_add_ahead(Context& context, const Graph& graph, const Node& node);
KernelPtr make_multi_adamw_kernel(Context& context, const Graph& graph, const Node& node);
void compile_multi_adamw_ahead(Context& context, const Graph& graph, const Node& node);
KernelPtr make_adamw8bit_kernel(Context& context, const Graph& graph, const Node& node);
KernelPtr make_multi_cast_kernel(Context& context, const Graph& graph, const Node& node);
void compile_multi_cast_ahead(Context& context, const Graph& graph, const Node& node);
KernelPtr make_packed_gate_kernel(Context& context, const Graph& graph, const Node& node);  // and its gradient
KernelPtr make_pad_kernel(Context& context, const Graph& graph, const Node& node);
/// Any op, by its reference on the host: slow, and the launch cannot be recorded.
KernelPtr make_reference_kernel(Context& context, const Graph& graph, const Node& node);
KernelPtr make_rotary_kernel(Context& context, const Graph& graph, const Node& node);  // and its gradient, and packed
/// The reference where the logits are not f32.
KernelPtr make_sample_token_kernel(Context& context, const Graph& graph, const Node& node);
KernelPtr make_slice_kernel(Context& context, const Graph& graph, const Node& node);
KernelPtr make_sum_squares_kernel(Context& context, const Graph& graph, const Node& node);
void compile_sum_squares_ahead(Context& context, const Graph& graph, const Node& node);
KernelPtr make_transpose_kernel(Context& context, const Graph& graph, const Node& node);

/// Whether there is a kernel for a node of the op, where cuDNN does what it may; else its maker gives the reference.
bool has_attention(const DeviceInfo& info, const Graph& graph, const Node& node);
bool has_context_attention(const DeviceInfo& info, const Graph& graph, const Node& node);  // and its gradient
bool has_float8_weights(const DeviceInfo& info, const Graph& graph, const Node& node);
bool has_matmul(const DeviceInfo& info, const Graph& graph, const Node& node);  // and fused_matmul
bool has_sample_token(const DeviceInfo& info, const Graph& graph, const Node& node);
/// The same of any node.
bool has_kernel(const DeviceInfo& info, const Graph& graph, const Node& node);

/// Whether a fused_matmul has a kernel that computes what its parts would, and is likely to pay. cuBLASLt
/// applies GELU to the sum before it is rounded: computed again, from the rounded sum, it would have other bits.
bool takes_matmul(const DeviceInfo& info, const Graph& graph, const Node& group);
/// Whether the kernel of an attention or attention_grad node has forms that also give the sums of dqkv (attribute
/// `sums`), and out or dqkv in eight bits (`float8`).
bool attention_has_extras(const DeviceInfo& info, const Graph& graph, const Node& node);

/// Scratch memory by op; see scratch_bytes.
int64_t attention_decode_scratch(const DeviceInfo& info, const Graph& graph, const Node& node);
int64_t attention_grad_scratch(const DeviceInfo& info, const Graph& graph, const Node& node);
int64_t classifier_scratch(const DeviceInfo& info, const Graph& graph, const Node& node);
int64_t embedding_grad_scratch(const DeviceInfo& info, const Graph& graph, const Node& node);
int64_t float8_weights_scratch(const DeviceInfo& info, const Graph& graph, const Node& node);
/// flat, row and column.
int64_t group_scratch(const DeviceInfo& info, const Graph& graph, const Node& node);
/// matmul and fused_matmul.
int64_t matmul_scratch(const DeviceInfo& info, const Graph& graph, const Node& node);
int64_t sum_squares_scratch(const DeviceInfo& info, const Graph& graph, const Node& node);

}  // namespace tokamak::cuda
