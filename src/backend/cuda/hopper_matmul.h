// Matmuls with a pointwise function by Hopper's tensor cores (kernels/matmul_hopper.cu): bf16 and f16, and of
// e4m3 operands. cuBLASLt has
// GELU and its derivative in an epilogue that costs more than a kernel of its own would, and cannot sum over rows
// beside it; the function here is of the rounded sum, as in a kernel of its own, so that it may be computed again.
// Deterministic. Tests: tests/backend/cuda/hopper_matmul_test.cpp
#pragma once

#include "backend/cuda/kernels.h"
#include "backend/cuda/matmul_problem.h"

#include <string>

namespace tokamak::cuda {

/// Whether there is a kernel for the problem on a device of this compute capability: a function of product and
/// bias that is stored beside it, or one of the product and a matrix; a as (M, K); N and K multiples of 8.
bool hopper_supports(const MatmulNode& node, Architecture architecture);

/// Scratch memory: the sums of every 32 rows, where sums are wanted.
int64_t hopper_scratch_bytes(const MatmulNode& node);

/// Device code of the functions matmul and sum_rows.
std::string hopper_matmul_source(const MatmulNode& node);

/// hopper_supports() must hold.
KernelPtr make_hopper_matmul(Context& context, const MatmulNode& node);

}  // namespace tokamak::cuda
