// Bytes of floats from one type to another: f32, bf16, f16. Tests: tests/checkpoint/export_model_test.cpp,
// tests/checkpoint/checkpoint_test.cpp.
#pragma once

#include "graph/type.h"

#include <cstddef>
#include <span>

namespace tokamak {

/// As many elements into `out`, rounded to nearest even where `to` has fewer bits. Exact to f32.
void convert_floats(std::span<const std::byte> from, DType dtype, DType to, std::span<std::byte> out);

/// None is infinite or not a number. True for other types than floats.
bool all_finite(std::span<const std::byte> bytes, DType dtype);

}  // namespace tokamak
