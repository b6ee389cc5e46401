// How the types of graph/type.h are called in device code (kernels/storage.cuh).
#pragma once

#include "graph/type.h"

namespace tokamak::cuda {

inline const char* device_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "float";
    case DType::kBF16: return "tokamak::bf16";
    case DType::kF16: return "tokamak::f16";
    case DType::kI32: return "int32_t";
    case DType::kU8: return "uint8_t";
    case DType::kF8E4M3: return "tokamak::f8e4m3";
    case DType::kF8E5M2: return "tokamak::f8e5m2";
  }
  return "";
}

}  // namespace tokamak::cuda
