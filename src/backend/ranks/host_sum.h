// Sums and maxima of several arrays in the CPU's memory. Tests: tests/backend/ranks/host_sum_test.cpp.
#pragma once

#include "backend/communicator.h"

namespace tokamak {

/// to[i] = reduction of all pieces' [i], in their order; bf16 and f16 in f32, rounded once; sums of i32 wrap around.
/// `to` may be one of the pieces.
void reduce_pieces(std::span<const void* const> pieces, void* to, int64_t count, DType dtype, Reduction reduction);

/// The pieces folded as fold_tree says; each sum is rounded to `dtype`. `to` may be one of the pieces.
void add_tree_of_pieces(std::span<const TreePiece> pieces, void* to, int64_t count, DType dtype);

}  // namespace tokamak
