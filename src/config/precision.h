// The number format of a run's matrix products. Tests: tests/config/field_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tokamak {

/// kAuto: the fastest on the target but kFp16 and kFp8; a resolved configuration says which.
enum class Precision : uint8_t { kAuto, kFp32, kTf32, kBf16, kFp16, kFp8 };

/// By Precision: the words of configurations, --help and reports.
inline constexpr std::array<std::string_view, 6> kPrecisionNames = {"auto", "fp32", "tf32", "bf16", "fp16", "fp8"};

constexpr std::string_view precision_name(Precision precision) { return kPrecisionNames[size_t(precision)]; }

/// Throws UserError naming the words when it is none of them.
Precision parse_precision(std::string_view name);

/// Whether operands are 16 bits wide; kFp8 is bf16 in which some products have operands of 8 bits.
constexpr bool is_low(Precision precision) {
  return precision == Precision::kBf16 || precision == Precision::kFp16 || precision == Precision::kFp8;
}

}  // namespace tokamak
