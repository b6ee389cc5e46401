#include "passes/product_use.h"

#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(ProductUse, FollowsAGradientToTheUpdate) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[8,4]
    input dy = %1 : f32[8,4]
    param w = %2 : f32[4,4]
    param v = %3 : f32[16]
    %4 = matmul(%0, %2) {trans_a=false, trans_b=false} : f32[8,4]
    %5 = matmul(%4, %1) {trans_a=true, trans_b=false} #backward : f32[4,4]
    %6 = matmul(%0, %1) {trans_a=true, trans_b=false} #backward : f32[4,4]
    %7 = matmul(%1, %1) {trans_a=true, trans_b=false} #backward : f32[4,4]
    %8 = add(%6, %7) #backward : f32[4,4]
    %9 = reshape(%8) {shape=[16]} #backward : f32[16]
    %10 = all_reduce(%9) {axis="data", reduction="sum", size=2} #backward : f32[16]
    %11 = matmul(%1, %2) {trans_a=false, trans_b=true} #backward : f32[8,4]
    %12 = exp(%11) #backward : f32[8,4]
    %13 = reduce_sum(%12) {dims=[0], keep=false} #backward : f32[4]
    %14 = matmul(%1, %1) {trans_a=true, trans_b=false} #backward : f32[4,4]
    %15 = matmul(%14, %2) {trans_a=false, trans_b=false} #backward : f32[4,4]
    %16 = add(%2, %5) #update : f32[4,4]
    %17 = add(%3, %10) #update : f32[16]
    update %2 = %16
    update %3 = %17
    result y = %13
    result z = %15
  })");
  std::vector<ProductUse> uses = find_product_uses(graph);
  EXPECT_EQ(uses[0], ProductUse::kForward);
  EXPECT_EQ(uses[1], ProductUse::kWeightGradient) << "the update reads it";
  EXPECT_EQ(uses[2], ProductUse::kWeightGradient) << "of one of two uses, and over ranks";
  EXPECT_EQ(uses[3], ProductUse::kWeightGradient);
  EXPECT_EQ(uses[7], ProductUse::kInputGradient) << "the backward pass goes on with it";
  EXPECT_EQ(uses[10], ProductUse::kInputGradient) << "in another product";
  EXPECT_EQ(uses[11], ProductUse::kWeightGradient) << "nothing but a result";
}

}  // namespace
}  // namespace tokamak
