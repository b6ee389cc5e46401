// What an operand of a matrix product is rounded to. It may take fewer bits than it is stored in: tf32 lies in memory
// as f32. Tests: tests/ops/matmul_formats_test.cpp
#pragma once

#include "config/precision.h"
#include "graph/target.h"
#include "graph/type.h"

namespace tokamak {

enum class NumberFormat : uint8_t { kF32, kTf32, kBf16, kF16, kF8E4M3, kF8E5M2 };

std::string_view format_name(NumberFormat format);  // "tf32"

inline bool is_float8(NumberFormat format) {
  return format == NumberFormat::kF8E4M3 || format == NumberFormat::kF8E5M2;
}

/// The element type that a tensor in this format is stored in.
DType storage_of(NumberFormat format);

/// The format of an operand of this float type; `tf32`: f32 may be rounded to TF32.
NumberFormat format_of(DType dtype, bool tf32 = false);

/// What a run of this precision (a resolved one) computes its products in.
NumberFormat format_of(Precision precision);

/// FLOP/s of products of such operands; of a format that the target has no units for, those
/// of what it is computed in instead.
double product_rate(const Target& target, NumberFormat format);

}  // namespace tokamak
