// Floats of eight bits, as NVIDIA, Arm and Intel define them (Micikevicius et al. 2022, FP8 Formats for Deep Learning,
// https://arxiv.org/abs/2209.05433). What is too large, infinity too, becomes the largest number; NaN stays NaN.
// Tests: tests/ops/float8_test.cpp
#pragma once

#include "graph/type.h"

namespace tokamak {

/// The nearest number of the type (kF8E4M3: up to 448, steps of 2^-9 near 0; kF8E5M2: up to 57344, steps of 2^-16),
/// ties to even.
double round_float8(DType type, double value);

/// The largest number of the type.
double largest_float8(DType type);

/// The bits of a number as round_float8() gives it, and the other way.
uint8_t encode_float8(DType type, double value);
double decode_float8(DType type, uint8_t bits);

}  // namespace tokamak
