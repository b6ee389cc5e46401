// What the products of our own loops and of CBLAS share: reading and writing elements of either type.
#pragma once

#include "backend/cpu/matmul.h"
#include "backend/cpu/simd.h"
#include "base/error.h"

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

inline void check_options(const MatmulOptions& o) {
  for (DType dtype : {o.input, o.output})
    TOKAMAK_CHECK(dtype == DType::kF32 || dtype == DType::kBF16, "matmul of {}", dtype_name(dtype));
}

}  // namespace tokamak::cpu
