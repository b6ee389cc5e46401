#include "passes/weight_products.h"

#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(WeightProducts, AreFoundWithWhatBecomesOfThem) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[8,4]
    input dy = %1 : f32[8,4]
    param w = %2 : f32[4,4]
    param v = %3 : f32[16]
    %4 = matmul(%0, %2) {trans_a=false, trans_b=false} : f32[8,4]
    %5 = matmul(%4, %1) {trans_a=true, trans_b=false} #backward : f32[4,4]
    %6 = matmul(%0, %1) {trans_a=true, trans_b=false} #backward : f32[4,4]
    %7 = reshape(%6) {shape=[16]} #backward : f32[16]
    %8 = all_reduce(%5) {axis="data", reduction="sum", size=2} #backward : f32[4,4]
    %9 = all_reduce(%7) {axis="data", reduction="sum", size=2} #backward : f32[16]
    %10 = matmul(%1, %2) {trans_a=false, trans_b=true} #backward : f32[8,4]
    %11 = exp(%10) #backward : f32[8,4]
    %12 = add(%2, %8) #update : f32[4,4]
    %13 = add(%3, %9) #update : f32[16]
    update %2 = %12
    update %3 = %13
    result y = %11
  })");
  std::vector<std::vector<int>> products = find_weight_products(graph);
  EXPECT_EQ(products[0], std::vector<int>()) << "of the forward pass";
  EXPECT_EQ(products[1], (std::vector<int>{1, 4}));
  EXPECT_EQ(products[2], (std::vector<int>{2, 3, 5}));
  EXPECT_EQ(products[6], std::vector<int>()) << "the backward pass goes on with it";
}

// Of products that were joined each parameter has a part.
TEST(WeightProducts, HavePartsForSeveralParameters) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[8,4]
    input dy = %1 : f32[8,6]
    param v = %2 : f32[2,4]
    param w = %3 : f32[4,4]
    %4 = matmul(%1, %0) {trans_a=true, trans_b=false} #backward : f32[6,4]
    %5 = slice(%4) {begin=0, dim=0, size=2} #backward : f32[2,4]
    %6 = slice(%4) {begin=2, dim=0, size=4} #backward : f32[4,4]
    %7 = all_reduce(%6) {axis="data", reduction="sum", size=2} #backward : f32[4,4]
    %8 = add(%2, %5) #update : f32[2,4]
    %9 = add(%3, %7) #update : f32[4,4]
    update %2 = %8
    update %3 = %9
  })");
  EXPECT_EQ(find_weight_products(graph)[0], (std::vector<int>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace tokamak
