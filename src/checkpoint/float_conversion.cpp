#include "checkpoint/float_conversion.h"

#include "base/parallel.h"
#include "checkpoint/safetensors.h"
#include "ops/scalar_math.h"

#include <bit>
#include <cstring>
#include <vector>

namespace tokamak {

namespace {

// Infinite or not a number: all bits of the exponent are set.
template <class Bits>
bool all_finite(std::span<const std::byte> bytes, Bits exponent) {
  bool finite = true;
  for (size_t at = 0; at < bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    finite &= (bits & exponent) != exponent;
  }
  return finite;
}

template <class T, class Round>
void narrow(std::span<const std::byte> floats, std::span<std::byte> out, Round round) {
  parallel_for(int64_t(floats.size() / sizeof(float)), 4096, [&](int64_t begin, int64_t end, int) {
    const std::byte* from = floats.data();  // of its own, else bytes that are written might be the address
    std::byte* to = out.data();
    for (int64_t i = begin; i < end; ++i) {
      float x;
      std::memcpy(&x, from + size_t(i) * sizeof x, sizeof x);
      T y = round(x);
      std::memcpy(to + size_t(i) * sizeof y, &y, sizeof y);
    }
  });
}

// Elements in f32 as the store has them, who may keep parameters in 16 bits.
void narrow(std::span<const std::byte> floats, DType to, std::span<std::byte> out) {
  if (to == DType::kBF16)
    narrow<uint16_t>(floats, out,
                     [](float x) { return uint16_t(std::bit_cast<uint32_t>(scalar::round_bf16(x)) >> 16); });
  else
    narrow<_Float16>(floats, out, [](float x) { return _Float16(x); });
}

// Elements of 16 bits as f32, which has all of their values.
void widen(std::span<const std::byte> from, DType dtype, std::span<std::byte> out) {
  parallel_for(int64_t(from.size() / sizeof(uint16_t)), 4096, [&](int64_t begin, int64_t end, int) {
    const std::byte* bytes = from.data();
    std::byte* to = out.data();
    for (int64_t i = begin; i < end; ++i) {
      uint16_t bits;
      std::memcpy(&bits, bytes + size_t(i) * sizeof bits, sizeof bits);
      float x = dtype == DType::kBF16 ? widen_bf16(bits) : widen_f16(bits);
      std::memcpy(to + size_t(i) * sizeof x, &x, sizeof x);
    }
  });
}

}  // namespace

bool all_finite(std::span<const std::byte> bytes, DType dtype) {
  switch (dtype) {
    case DType::kF32: return all_finite<uint32_t>(bytes, 0x7F800000);
    case DType::kBF16: return all_finite<uint16_t>(bytes, 0x7F80);
    case DType::kF16: return all_finite<uint16_t>(bytes, 0x7C00);
    default: return true;
  }
}

void convert_floats(std::span<const std::byte> from, DType dtype, DType to, std::span<std::byte> out) {
  if (dtype == to) {
    std::memcpy(out.data(), from.data(), out.size());
  } else if (to == DType::kF32) {
    widen(from, dtype, out);
  } else if (dtype == DType::kF32) {
    narrow(from, to, out);
  } else {  // from one type of 16 bits to the other
    std::vector<std::byte> wide(2 * from.size());
    widen(from, dtype, wide);
    narrow(wide, to, out);
  }
}

}  // namespace tokamak
