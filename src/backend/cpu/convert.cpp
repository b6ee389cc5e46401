#include "backend/cpu/convert.h"

#include "ops/float8.h"
#include "ops/scalar_math.h"

#include <bit>
#include <cstring>

namespace tokamak::cpu {

void load(DType dtype, const void* from, int64_t at, int64_t n, float* to) {
  switch (dtype) {
    case DType::kF32: std::memcpy(to, static_cast<const float*>(from) + at, size_t(n) * 4); return;
    case DType::kBF16: {
      const auto* x = static_cast<const uint16_t*>(from) + at;
      for (int64_t i = 0; i < n; ++i) to[i] = std::bit_cast<float>(uint32_t(x[i]) << 16);
      return;
    }
    case DType::kF16: {
      const auto* x = static_cast<const _Float16*>(from) + at;
      for (int64_t i = 0; i < n; ++i) to[i] = float(x[i]);
      return;
    }
    case DType::kF8E4M3:
    case DType::kF8E5M2: {
      const auto* x = static_cast<const uint8_t*>(from) + at;
      for (int64_t i = 0; i < n; ++i) to[i] = float(decode_float8(dtype, x[i]));
      return;
    }
    case DType::kI32: {
      const auto* x = static_cast<const int32_t*>(from) + at;
      for (int64_t i = 0; i < n; ++i) to[i] = float(x[i]);
      return;
    }
    case DType::kU8: {
      const auto* x = static_cast<const uint8_t*>(from) + at;
      for (int64_t i = 0; i < n; ++i) to[i] = float(x[i]);
      return;
    }
  }
}

void store(DType dtype, const float* from, int64_t n, void* to, int64_t at) {
  switch (dtype) {
    case DType::kF32: std::memcpy(static_cast<float*>(to) + at, from, size_t(n) * 4); return;
    case DType::kBF16: {
      auto* y = static_cast<uint16_t*>(to) + at;
      for (int64_t i = 0; i < n; ++i) y[i] = uint16_t(std::bit_cast<uint32_t>(scalar::round_bf16(from[i])) >> 16);
      return;
    }
    case DType::kF16: {
      auto* y = static_cast<_Float16*>(to) + at;
      for (int64_t i = 0; i < n; ++i) y[i] = _Float16(from[i]);
      return;
    }
    case DType::kF8E4M3:
    case DType::kF8E5M2: {
      auto* y = static_cast<uint8_t*>(to) + at;
      for (int64_t i = 0; i < n; ++i) y[i] = encode_float8(dtype, round_float8(dtype, from[i]));
      return;
    }
    case DType::kI32: {
      auto* y = static_cast<int32_t*>(to) + at;
      for (int64_t i = 0; i < n; ++i) y[i] = int32_t(from[i]);
      return;
    }
    case DType::kU8: {
      auto* y = static_cast<uint8_t*>(to) + at;
      for (int64_t i = 0; i < n; ++i) y[i] = uint8_t(from[i]);
      return;
    }
  }
}

}  // namespace tokamak::cpu
