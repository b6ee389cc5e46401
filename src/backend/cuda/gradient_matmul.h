// Products of eight bits for gradients of weights by Hopper's tensor cores (kernels/matmul_gradient.cu). cuBLASLt has
// them only where the sums of both operands run along rows; here those of one may run from row to row, as a forward
// or backward pass leaves it. Sums in f32, of tensor cores' sums of 128 terms. Deterministic.
// Tests: tests/backend/cuda/gradient_matmul_test.cpp
#pragma once

#include "backend/cuda/kernels.h"
#include "backend/cuda/matmul_problem.h"

#include <string>

namespace tokamak::cuda {

/// Whether there is a kernel for the problem on a device of this compute capability: operands of eight bits with
/// scales, a as (K, M) and b as (N, K), or a as (M, K) and b as (K, N); sizes that are multiples of 16; f32, added to
/// a matrix or not, or bf16.
bool gradient_supports(const MatmulNode& node, Architecture architecture);

/// Into so many parts the sum is cut, which are added up afterwards, on so many multiprocessors: where tiles of the
/// result are fewer, or leave many of them idle at the end.
int64_t gradient_parts(const MatmulProblem& problem, int multiprocessors);

/// Scratch memory: the parts.
int64_t gradient_scratch_bytes(const MatmulProblem& problem, int multiprocessors);

/// Device code of the functions multiply_gradient and add_parts.
std::string gradient_matmul_source(const MatmulProblem& problem, int64_t parts);

/// gradient_supports() must hold.
KernelPtr make_gradient_matmul(Context& context, const MatmulNode& node);

}  // namespace tokamak::cuda
