// Between the stored element types and the fp32 that tiles compute in.
#pragma once

#include "graph/type.h"

namespace tokamak::cpu {

/// n elements at index `at` of `from` (of type dtype) as floats.
void load(DType dtype, const void* from, int64_t at, int64_t n, float* to);

/// The inverse; bf16 and f16 round to nearest, ties to even; i32 truncates.
void store(DType dtype, const float* from, int64_t n, void* to, int64_t at);

}  // namespace tokamak::cpu
