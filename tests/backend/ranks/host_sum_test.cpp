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

// 2048 + 1 is 2048 in fp16, and 2048 + 2 is 2050.
TEST(HostSum, RoundsAdditionsInFp16) {
  uint16_t x[] = {0x6800}, one[] = {0x3c00}, sum[] = {0};
  TreePiece pieces[] = {{x, 0}, {one, 0}, {one, 0}, {one, 0}};  // (2048 + 1) + (1 + 1)
  add_tree_of_pieces(pieces, sum, 1, DType::kF16);
  EXPECT_EQ(sum[0], 0x6801) << "2050, where 2051 would become 2052";
  const void* together[] = {x, one, one};
  reduce_pieces(together, sum, 1, DType::kF16, Reduction::kSum);
  EXPECT_EQ(sum[0], 0x6801);
}

// More than one block of what is added at once, and a part of one.
TEST(HostSum, AddsEveryElement) {
  for (size_t count : {1023, 1025, 4000}) {
    std::vector<float> a(count), b(count), sum(count, -1.0f), tree(count, -1.0f);
    for (size_t i = 0; i < count; ++i) a[i] = float(i), b[i] = float(3 * i);
    const void* pieces[] = {a.data(), b.data()};
    reduce_pieces(pieces, sum.data(), int64_t(count), DType::kF32, Reduction::kSum);
    TreePiece leaves[] = {{a.data(), 0}, {b.data(), 0}};
    add_tree_of_pieces(leaves, tree.data(), int64_t(count), DType::kF32);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(sum[i], float(4 * i)) << i;
      ASSERT_EQ(tree[i], float(4 * i)) << i;
    }
  }
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
