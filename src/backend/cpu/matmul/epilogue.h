// What the products without fused epilogues share: reading either type, and writing C from a row of f32 sums.
#pragma once

#include "backend/cpu/matmul.h"
#include "backend/cpu/simd.h"
#include "base/error.h"
#include "ops/scalar_math.h"

namespace tokamak::cpu {

inline float read_as_float(const void* data, DType dtype, int64_t i) {
  return dtype == DType::kF32 ? static_cast<const float*>(data)[i] : to_float(static_cast<const Bf16*>(data)[i]);
}

inline void write_from_float(void* data, DType dtype, int64_t i, float value) {
  if (dtype == DType::kF32)
    static_cast<float*>(data)[i] = value;
  else
    static_cast<Bf16*>(data)[i] = from_float<Bf16>(value);
}

/// GELU in its tanh form.
inline float gelu_tanh(float x) { return 0.5f * x * (1 + scalar::tanh(0.797884561f * (x + 0.044715f * x * x * x))); }

/// Writes columns [begin, end) of one row of C: sums[j] belongs to column begin + j; `row` is the row's first element.
inline void write_row(const MatmulOptions& o, const float* sums, const float* bias, void* c, int64_t row, int64_t begin,
                      int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    float value = sums[j - begin];
    if (o.bias) value += bias[j];
    if (o.accumulate) value += read_as_float(c, o.output, row + j);
    if (o.gelu) value = gelu_tanh(value);
    write_from_float(c, o.output, row + j, value);
  }
}

inline void check_options(const MatmulOptions& o) {
  TOKAMAK_CHECK(!(o.gelu && o.accumulate), "a matmul cannot accumulate through GELU");
  for (DType dtype : {o.input, o.output})
    TOKAMAK_CHECK(dtype == DType::kF32 || dtype == DType::kBF16, "matmul of {}", dtype_name(dtype));
}

}  // namespace tokamak::cpu
