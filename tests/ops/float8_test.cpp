// Floats of eight bits, by hand and over all their bits.
#include "ops/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tokamak {
namespace {

constexpr DType kE4M3 = DType::kF8E4M3, kE5M2 = DType::kF8E5M2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Micikevicius et al., table 1.
TEST(Float8, HasTheNumbersOfThePaper) {
  EXPECT_EQ(decode_float8(kE4M3, 0b0'1111'110), 448);
  EXPECT_EQ(decode_float8(kE4M3, 0b0'0001'000), 0x1p-6);
  EXPECT_EQ(decode_float8(kE4M3, 0b0'0000'001), 0x1p-9);
  EXPECT_TRUE(std::isnan(decode_float8(kE4M3, 0b1'1111'111)));
  EXPECT_EQ(decode_float8(kE5M2, 0b0'11110'11), 57344);
  EXPECT_EQ(decode_float8(kE5M2, 0b0'00001'00), 0x1p-14);
  EXPECT_EQ(decode_float8(kE5M2, 0b1'00000'01), -0x1p-16);
  EXPECT_EQ(decode_float8(kE5M2, 0b1'11111'00), -kInfinity);
  EXPECT_TRUE(std::isnan(decode_float8(kE5M2, 0b0'11111'01)));
  EXPECT_EQ(largest_float8(kE4M3), 448);
  EXPECT_EQ(largest_float8(kE5M2), 57344);
}

TEST(Float8, RoundsToNearestWithTiesToEven) {
  EXPECT_EQ(round_float8(kE4M3, 17), 16);
  EXPECT_EQ(round_float8(kE4M3, 19), 20);
  EXPECT_EQ(round_float8(kE4M3, 1.9), 1.875);
  EXPECT_EQ(round_float8(kE4M3, 0x1p-10), 0) << "half of the smallest is even as 0";
  EXPECT_EQ(round_float8(kE4M3, -0x3p-10), -0x1p-8);
  EXPECT_EQ(round_float8(kE4M3, 15.9), 16) << "into the next exponent";
  EXPECT_EQ(round_float8(kE5M2, 9), 8);
  EXPECT_EQ(round_float8(kE5M2, 11), 12);
}

TEST(Float8, WhatIsTooLargeIsTheLargest) {
  for (double large : {460.0, 1e9, kInfinity}) {
    EXPECT_EQ(round_float8(kE4M3, large), 448);
    EXPECT_EQ(round_float8(kE4M3, -large), -448);
  }
  EXPECT_EQ(round_float8(kE5M2, 60000), 57344);
  EXPECT_EQ(round_float8(kE5M2, kInfinity), 57344);
  EXPECT_TRUE(std::isnan(round_float8(kE4M3, NAN)));
  EXPECT_TRUE(std::isnan(decode_float8(kE4M3, encode_float8(kE4M3, NAN))));
  EXPECT_TRUE(std::isnan(decode_float8(kE5M2, encode_float8(kE5M2, NAN))));
}

TEST(Float8, EveryNumberIsItself) {
  for (DType type : {kE4M3, kE5M2})
    for (int bits = 0; bits < 256; ++bits) {
      double value = decode_float8(type, uint8_t(bits));
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(round_float8(type, value), value) << bits;
      EXPECT_EQ(encode_float8(type, value), bits) << dtype_name(type) << " " << value;
    }
}

// Against the definition: no other number of the type is nearer.
TEST(Float8, NoNumberIsNearer) {
  for (DType type : {kE4M3, kE5M2})
    for (double x = 1e-5; x < 400; x *= 1.0137) {
      double nearest = round_float8(type, x);
      for (int bits = 0; bits < 128; ++bits)
        if (double other = decode_float8(type, uint8_t(bits)); std::isfinite(other))
          EXPECT_LE(std::fabs(nearest - x), std::fabs(other - x)) << dtype_name(type) << " " << x;
    }
}

}  // namespace
}  // namespace tokamak
