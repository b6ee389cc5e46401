// The numbers of 8 bits that block-wise optimizer states are kept in (Dettmers et al., "8-bit optimizers via block-wise
// quantization", 2022): decades from 1e-7 to 1, of which the lower ones have fewer numbers. A code is the place of its
// number among all in ascending order, as in bitsandbytes. Tests: tests/ops/dynamic_map_test.cpp.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace tokamak {

class DynamicMap {
 public:
  /// Of numbers in [-1, 1], of which the lowest is -0.993, or in [0, 1].
  explicit DynamicMap(bool is_signed);

  float value(uint8_t code) const { return values_[code]; }
  std::span<const float> values() const { return values_; }
  /// Between each number and the next.
  std::span<const float> midpoints() const { return midpoints_; }

  /// Of the number nearest to x in [-1, 1]; of two that are equally near, the one nearer to 0.
  uint8_t code(float x) const {
    uint32_t bits = std::bit_cast<uint32_t>(x), size = (bits & 0x7fffffffu) >> kShift;
    int place = first_[size < kLeast ? 0 : size - kLeast];
    place += std::bit_cast<float>(bits & 0x7fffffffu) > above_[size_t(place)];
    if (bits >> 31) return uint8_t(zero_ - (place < zero_ ? place : zero_));
    return uint8_t(zero_ + place);
  }

 private:
  // Floats with the same sign, exponent and first 8 bits have at most one midpoint between them.
  static constexpr int kShift = 15;
  static constexpr uint32_t kLeast = std::bit_cast<uint32_t>(0x1p-24f) >> kShift;
  static constexpr uint32_t kMost = std::bit_cast<uint32_t>(1.0f) >> kShift;

  std::array<float, 256> values_;
  std::array<float, 255> midpoints_;
  int zero_ = 0;                                   // the code of 0
  std::vector<float> above_;                       // of the numbers from 0 on, the midpoint above; infinity at the end
  std::array<uint8_t, kMost - kLeast + 1> first_;  // of each such set of floats, the place from 0 on of the least
};

}  // namespace tokamak
