// Makers of the CPU kernels, one per op that is not a group; kernel_table.cpp says which op has which.
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
std::unique_ptr<Kernel> make_multi_adamw_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_multi_cast_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_matmul_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_attention_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_attention_grad_kernel(const Graph& graph, const Node& node);
std::unique_ptr<Kernel> make_attention_decode_kernel(const Graph& graph, const Node& node);

/// Groups of all kinds; of kind matmul: the matmul with its epilogue.
std::unique_ptr<Kernel> make_any_group_kernel(const Graph& graph, const Node& node);

/// Any op, through its reference kernel: slow, for what has no kernel of its own.
std::unique_ptr<Kernel> make_reference_kernel(const Graph& graph, const Node& node);

}  // namespace tokamak::cpu
