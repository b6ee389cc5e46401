// The text of what adds ranks' pieces; needs no GPU.
#include "backend/cuda/nccl.h"
#include "tests/backend/cuda/architectures.h"

#include <gtest/gtest.h>

namespace tokamak::cuda {
namespace {

TEST(TreeSum, AddsNeighboursOfOneSizeAsSoonAsTheyAreThere) {
  TreePiece pieces[] = {{nullptr, 1}, {nullptr, 0}, {nullptr, 0}};
  std::string source = tree_sum_source(DType::kF32, pieces);
  EXPECT_NE(source.find("sum0 = stored(x[1] + x[2])"), source.npos) << source;
  EXPECT_NE(source.find("sum1 = stored(x[0] + sum0)"), source.npos) << source;
  EXPECT_NE(source.find("return sum1;"), source.npos) << source;
}

TEST(TreeSum, Compiles) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kI32}) {
    std::vector<TreePiece> eight(8, {nullptr, 2});
    test::expect_compiles(tree_sum_source(dtype, eight), {"rank_sum"}, test::checked_architectures());
  }
  std::vector<TreePiece> many(32, {nullptr, 2});
  test::expect_compiles(tree_sum_source(DType::kF32, many), {"rank_sum"}, test::one_architecture());
  TreePiece one[] = {{nullptr, 3}};
  test::expect_compiles(tree_sum_source(DType::kF32, one), {"rank_sum"}, test::one_architecture());
}

TEST(RankSum, RoundsOnce) {
  std::string source = rank_sum_source(DType::kBF16, 3);
  EXPECT_NE(source.find("return x[0] + x[1] + x[2];"), source.npos) << source;
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kI32})
    test::expect_compiles(rank_sum_source(dtype, 4), {"rank_sum"}, test::checked_architectures());
}

}  // namespace
}  // namespace tokamak::cuda
