#include "backend/ranks/host_sum.h"

#include <gtest/gtest.h>

#include <limits>

namespace tokamak {
namespace {

uint16_t bf16(float x) { return uint16_t(std::bit_cast<uint32_t>(x) >> 16); }
float from_bf16(uint16_t x) { return std::bit_cast<float>(uint32_t(x) << 16); }

// 256 + 1 is 256 in bf16, and 256 + 2 is 258.
TEST(HostSum, ReducesBf16InF32AndRoundsOnce) {
  uint16_t x[] = {bf16(256)}, one[] = {bf16(1)}, sum[] = {0};
  const void* pieces[] = {x, one, one};
  reduce_pieces(pieces, sum, 1, DType::kBF16, Reduction::kSum);
  EXPECT_EQ(from_bf16(sum[0]), 258);
}

TEST(HostSum, RoundsEachAdditionOfATree) {
  uint16_t x[] = {bf16(256)}, one[] = {bf16(1)}, sum[] = {0};
  TreePiece pieces[] = {{x, 0}, {one, 0}, {one, 0}, {one, 0}};  // (256 + 1) + (1 + 1)
  add_tree_of_pieces(pieces, sum, 1, DType::kBF16);
  EXPECT_EQ(from_bf16(sum[0]), 258);
  TreePiece last[] = {{one, 0}, {one, 0}, {one, 0}, {x, 0}};  // (1 + 1) + (1 + 256)
  add_tree_of_pieces(last, sum, 1, DType::kBF16);
  EXPECT_EQ(from_bf16(sum[0]), 258);
  TreePiece none[] = {{one, 0}, {x, 0}};
  add_tree_of_pieces(none, sum, 1, DType::kBF16);
  EXPECT_EQ(from_bf16(sum[0]), 256);
}

TEST(HostSum, IntegersAreExactAndWrapAround) {
  int32_t a[] = {16777217, std::numeric_limits<int32_t>::max(), -5}, b[] = {2, 1, -7}, to[3];
  const void* pieces[] = {a, b};
  reduce_pieces(pieces, to, 3, DType::kI32, Reduction::kSum);
  EXPECT_EQ(to[0], 16777219);
  EXPECT_EQ(to[1], std::numeric_limits<int32_t>::min());
  reduce_pieces(pieces, to, 3, DType::kI32, Reduction::kMax);
  EXPECT_EQ(to[0], 16777217);
  EXPECT_EQ(to[2], -5);
}

}  // namespace
}  // namespace tokamak
