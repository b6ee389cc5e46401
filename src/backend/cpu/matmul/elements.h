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

/// Whether all is in types that these functions read and write.
inline bool has_elements(const MatmulOptions& o) {
  for (DType dtype : {o.a, o.b, o.output})
    if (dtype != DType::kF32 && dtype != DType::kBF16) return false;
  return true;
}

inline void check_options(const MatmulOptions& o) {
  TOKAMAK_CHECK(has_elements(o), "matmul of {} and {} to {}", dtype_name(o.a), dtype_name(o.b), dtype_name(o.output));
}

}  // namespace tokamak::cpu
