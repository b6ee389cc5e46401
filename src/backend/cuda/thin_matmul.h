// Matmuls of few rows (kernels/thin.cuh), as generation has them: bound by reading b, which cuBLASLt's tiles of
// many rows do slowly. Elements of 16 bits are multiplied by the tensor cores where b is (K, N). The function is of the
// rounded sum, as in a kernel of its own. Deterministic; a row's bits do not depend on how many there are. Tests:
// tests/backend/cuda/thin_matmul_test.cpp
#pragma once

#include "backend/cuda/kernel_start.h"
#include "backend/cuda/kernels.h"
#include "backend/cuda/matmul_problem.h"

#include <string>

namespace tokamak::cuda {

/// Whether there is a kernel for the problem: at most 8 rows, rows of b in multiples of 16 bytes, one output.
bool thin_supports(const MatmulNode& node);

/// Whether b may be read before the kernel before this one has ended. That has begun, so all before it have ended and
/// what they wrote can be read (kernels/begin_kernel.cuh), or, where it awaits values, all before its chain. It is safe
/// where b is a parameter that this graph does not change, for then it was written before the graph's first kernel, and
/// another operand is made by a kernel of the graph, for then there is one between.
bool reads_weights_early(const Graph& graph, const Node& node, const MatmulForm& form);

/// Whether the kernel can be a link of a chain, whatever of a, the addend and what the rows are made of is awaited: b
/// and the bias are arguments, and what is awaited fits into the block's shared memory.
bool thin_can_chain(const Graph& graph, const Node& node, const MatmulNode& matmul);

/// Device code of the function multiply_columns or, where b is (N, K), multiply_rows. What may be read early is b.
std::string thin_matmul_source(const MatmulNode& node, const KernelStart& start = {});

/// thin_supports() must hold, and with a link thin_can_chain(). The link is not kept.
KernelPtr make_thin_matmul(Context& context, const MatmulNode& node, const KernelStart& start);

}  // namespace tokamak::cuda
