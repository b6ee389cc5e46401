// The text of ordered sums; needs no GPU.
#include "backend/cuda/nccl.h"
#include "tests/backend/cuda/architectures.h"

#include <gtest/gtest.h>

namespace tokamak::cuda {
namespace {

TEST(TreeSum, AddsNeighboursOfOneSizeAsSoonAsTheyAreThere) {
  TreePiece pieces[] = {{nullptr, 1}, {nullptr, 0}, {nullptr, 0}};
  std::string source = tree_sum_source(DType::kF32, pieces);
  EXPECT_NE(source.find("v3 = stored(v1 + v2)"), source.npos) << source;
  EXPECT_NE(source.find("v4 = stored(v0 + v3)"), source.npos) << source;
  EXPECT_NE(source.find("store(v4, to[i])"), source.npos) << source;
}

TEST(TreeSum, Compiles) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kI32}) {
    std::vector<TreePiece> eight(8, {nullptr, 2});
    test::expect_compiles(tree_sum_source(dtype, eight), {"tree_sum"}, test::checked_architectures());
  }
  TreePiece one[] = {{nullptr, 3}};
  test::expect_compiles(tree_sum_source(DType::kF32, one), {"tree_sum"}, test::one_architecture());
}

}  // namespace
}  // namespace tokamak::cuda
