#include "passes/async_products.h"

#include "tests/passes/async_step.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::canonical;
using test::count_ops;
using test::free_launches;
using test::parse;
using test::replaced;

std::string after_pass(std::string_view text) {
  Graph graph = parse(text);
  async_products(graph, free_launches());
  verify(graph);
  return print(graph);
}

constexpr std::string_view kGathered = R"(graph g {
  input x = %0 : f32[2,64,16]
  input w = %1 : f32[16,8]
  %2 = exp(%0) : f32[2,64,16]
  %3 = all_gather(%2) {axis="tensor", dims=[0], size=2} : f32[4,64,16]
  %4 = matmul(%3, %1) {trans_a=false, trans_b=false} : f32[4,64,8]
  result y = %4
})";

TEST(AsyncProducts, BeginWithTheRanksOwnRows) {
  EXPECT_EQ(after_pass(kGathered), canonical(R"(graph g {
  input x = %0 : f32[2,64,16]
  input w = %1 : f32[16,8]
  input rank.tensor = %4 : i32[]
  %2 = exp(%0) : f32[2,64,16]
  %3 = all_gather(%2) {axis="tensor", dims=[0], size=2} : f32[4,64,16]
  %5 = row_block(%2, %1, %4) {size=2, step=0} : f32[4,64,8] {
    graph block {
      input a0 = %0 : f32[2,64,16]
      input a1 = %1 : f32[16,8]
      %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,64,8]
      result r0 = %2
    }
  }
  %6 = row_block(%3, %1, %4, %5) {size=2, step=1} : f32[4,64,8] {
    graph block {
      input a0 = %0 : f32[2,64,16]
      input a1 = %1 : f32[16,8]
      %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,64,8]
      result r0 = %2
    }
  }
  result y = %6
})"));
}

// Of one gather: both begin before the first of them goes on.
TEST(AsyncProducts, AllBeginBeforeOneGoesOn) {
  Graph graph = parse(R"(graph g {
  input x = %0 : f32[2,64,16]
  input w = %1 : f32[16,8]
  input v = %2 : f32[16,4]
  %3 = all_gather(%0) {axis="tensor", dims=[0], size=2} : f32[4,64,16]
  %4 = reshape(%3) {shape=[256,16]} : f32[256,16]
  %5 = matmul(%4, %1) {trans_a=false, trans_b=false} : f32[256,8]
  %6 = exp(%5) : f32[256,8]
  %7 = matmul(%3, %2) {trans_a=false, trans_b=false} : f32[4,64,4]
  result y = %6
  result z = %7
})");
  ASSERT_TRUE(async_products(graph, free_launches()));
  std::vector<int64_t> steps;
  for (const Node& node : graph.nodes())
    if (node.op->name == "row_block") steps.push_back(node.attrs.get_int("step"));
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 0, 1, 1}));
}

// What is not divided: few rows, columns, other axes, and products over rows.
TEST(AsyncProducts, OthersStay) {
  std::string whole(kGathered);
  for (const std::string& text :
       {replaced(whole, ",64,", ",8,"), replaced(replaced(whole, "dims=[0]", "dims=[1]"), "[4,64,", "[2,128,"),
        replaced(whole, "tensor", "context")}) {
    Graph graph = parse(text);
    EXPECT_FALSE(async_products(graph, free_launches())) << text;
  }
  Graph gradient = parse(R"(graph g {
  input x = %0 : f32[128,16]
  input dy = %1 : f32[256,8]
  %2 = all_gather(%0) {axis="tensor", dims=[0], size=2} : f32[256,16]
  %3 = matmul(%2, %1) {trans_a=true, trans_b=false} : f32[16,8]
  result dw = %3
})");
  EXPECT_FALSE(async_products(gradient, free_launches()));
}

// Products forward and gradients of inputs; each element is what it was, to the bit.
TEST(AsyncProducts, WholeStepsHaveTheSameBits) {
  for (const char* family : {"gpt2", "llama"})
    for (auto [data, tensor, zero] : {std::array{1, 4, 0}, {2, 2, 3}})
      for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
        SCOPED_TRACE(fmt::format("{}, data {} x tensor {}, ZeRO {}", family, data, tensor, zero));
        ModelConfig model{.family = family, .layers = 2, .heads = 4, .width = 32, .context = 64, .vocab = 24};
        MeshConfig config{.data = data, .tensor = tensor, .zero = zero};
        Graph step = test::step_of(model);
        auto compiled = [&](bool async) {
          PassContext context = test::async_context(config, precision, async);
          context.options.disable_passes = {"async_scatters"};
          return test::compiled(step, context);
        };
        Graph got = compiled(true), expected = compiled(false);
        EXPECT_GE(count_ops(got, "row_block"), 4 * tensor * 2);
        EXPECT_EQ(count_ops(expected, "row_block"), 0);
        auto arguments = test::arguments_of_ranks(expected, step_mesh(config), test::step_arguments(step));
        ASSERT_EQ(test::find_difference(expected, got, step_mesh(config), arguments), "");
      }
}

}  // namespace
}  // namespace tokamak
