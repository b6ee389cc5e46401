// Matmuls of few rows (kernels/matmul_thin.cu), as generation has them: bound by reading b, which cuBLASLt's tiles of
// many rows do slowly. The function is of the rounded sum, as in a kernel of its own. Deterministic; a row's bits do
// not depend on how many there are. Tests: tests/backend/cuda/thin_matmul_test.cpp
#pragma once

#include "backend/cuda/kernels.h"
#include "backend/cuda/matmul_problem.h"

#include <string>

namespace tokamak::cuda {

/// Whether there is a kernel for the problem: at most 8 rows, rows of b in multiples of 16 bytes, one output.
bool thin_supports(const MatmulNode& node);

/// Device code of the functions multiply_columns and multiply_rows; the first is for b as (K, N).
std::string thin_matmul_source(const MatmulNode& node);

/// thin_supports() must hold.
KernelPtr make_thin_matmul(Context& context, const MatmulNode& node);

}  // namespace tokamak::cuda
