// Products of few rows, as generation has them: bound by reading B, which all threads do once, each its own columns of
// the result. A row's bits depend neither on how many rows there are nor on the number of threads.
// Tests: tests/backend/cpu/thin_matmul_test.cpp.
#pragma once

#include "backend/cpu/matmul.h"

namespace tokamak::cpu {

/// At most 8 rows, one matrix, A as (m, k), everything dense.
bool is_thin(const MatmulShape& shape);
/// Operands of f32 or bf16, each of its own.
bool thin_supports(const MatmulOptions& options);

/// As Matmul::run. is_thin() and thin_supports() must hold.
void thin_matmul(const MatmulShape& shape, const MatmulOptions& options, const void* a, const void* b, void* c);

}  // namespace tokamak::cpu
