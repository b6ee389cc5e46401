#include "ops/redistribute.h"

#include "tests/ops/harness.h"

#include <gtest/gtest.h>

namespace tokamak::test {

std::vector<OpCase> redistribute_cases() {
  return {
      {"Along", &op::redistribute, {f32({4, 3})}, {{"axes", "data tensor"}, {"dim", int64_t{1}}}, 0},
      {"AsWanted", &op::redistribute, {f32({2, 3})}, {}, 0},
      {"Bf16", &op::redistribute, {bf16({6})}, {{"axes", "data"}, {"dim", int64_t{0}}}, 0},
  };
}

namespace {

TEST(Redistribute, RefusesADimThatThereIsNot) {
  expect_refused({"", &op::redistribute, {f32({2, 3})}, {{"axes", "data"}, {"dim", int64_t{2}}}},
                 "expected a dim below 2, got 2");
  expect_refused({"", &op::redistribute, {f32({2, 3})}, {{"axes", "data"}}}, "expected axes with a dim, or neither");
}

TEST(Redistribute, SaysWhatItAsksFor) {
  Graph graph;
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {2, 3}});
  redistribute(g, redistribute(g, x, "data tensor", 1));
  EXPECT_EQ(redistribution_of(graph.nodes()[0]).axes, (std::vector<std::string>{"data", "tensor"}));
  EXPECT_EQ(redistribution_of(graph.nodes()[0]).dim, 1);
  EXPECT_TRUE(redistribution_of(graph.nodes()[1]).axes.empty());
}

}  // namespace
}  // namespace tokamak::test
