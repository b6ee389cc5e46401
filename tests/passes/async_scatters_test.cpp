#include "passes/async_scatters.h"

#include "tests/passes/async_step.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::canonical;
using test::count_ops;
using test::free_launches;
using test::parse;
using test::replaced;

constexpr std::string_view kScattered = R"(graph g {
  input x = %0 : f32[4,64,16]
  input w = %1 : f32[16,8]
  %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[4,64,8]
  %3 = reduce_scatter(%2) {axis="tensor", dims=[0], size=2} : f32[2,64,8]
  %4 = exp(%3) : f32[2,64,8]
  result y = %4
})";

TEST(AsyncScatters, SendABlockWhileTheNextIsComputed) {
  Graph graph = parse(kScattered);
  EXPECT_TRUE(async_scatters(graph, free_launches()));
  verify(graph);
  EXPECT_EQ(print(graph), canonical(R"(graph g {
  input x = %0 : f32[4,64,16]
  input w = %1 : f32[16,8]
  input rank.tensor = %2 : i32[]
  %3 = row_block(%0, %1, %2) {alone=true, size=2, step=1} : f32[2,64,8] {
    graph block {
      input a0 = %0 : f32[2,64,16]
      input a1 = %1 : f32[16,8]
      %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,64,8]
      result r0 = %2
    }
  }
  %4 = permute(%3) {axis="tensor", size=2, step=1} : f32[2,64,8]
  %5 = row_block(%0, %1, %2) {alone=true, size=2, step=0} : f32[2,64,8] {
    graph block {
      input a0 = %0 : f32[2,64,16]
      input a1 = %1 : f32[16,8]
      %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,64,8]
      result r0 = %2
    }
  }
  %6 = add(%5, %4) : f32[2,64,8]
  %7 = exp(%6) : f32[2,64,8]
  result y = %7
})"));
}

// What others read as well, sums in order, columns, other axes, and few rows.
TEST(AsyncScatters, OthersStay) {
  std::string whole(kScattered);
  for (const std::string& text : {replaced(whole, "  result y = %4\n", "  result y = %4\n  result z = %2\n"),
                                  replaced(whole, "dims=[0],", "dims=[0], ordered=true,"),
                                  replaced(replaced(whole, "dims=[0]", "dims=[1]"), "[2,64,", "[4,32,"),
                                  replaced(whole, "tensor", "context"), replaced(whole, ",64,", ",8,")}) {
    Graph graph = parse(text);
    EXPECT_FALSE(async_scatters(graph, free_launches())) << text;
  }
}

// Forward, and of gradients; with what is gathered in blocks as well.
TEST(AsyncScatters, WholeStepsOnTwoRanksHaveTheSameBits) {
  // Of Llama the gradients of several products are one sum before it is scattered, unless they are joined.
  for (auto [family, most] : {std::pair{"gpt2", 8}, {"llama", 5}})
    for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
      SCOPED_TRACE(family);
      ModelConfig model{.family = family, .layers = 2, .heads = 4, .width = 32, .context = 64, .vocab = 24};
      MeshConfig config{.tensor = 2};
      Graph step = test::step_of(model);
      Graph got = test::compiled(step, test::async_context(config, precision, true)),
            expected = test::compiled(step, test::async_context(config, precision, false));
      EXPECT_GE(count_ops(got, "permute"), most);
      EXPECT_LE(count_ops(got, "reduce_scatter"), count_ops(expected, "reduce_scatter") - most);
      auto arguments = test::arguments_of_ranks(expected, step_mesh(config), test::step_arguments(step));
      ASSERT_EQ(test::find_difference(expected, got, step_mesh(config), arguments), "");
    }
}

TEST(AsyncScatters, WholeStepsOnFourRanksTrainAsOne) {
  ModelConfig model{.layers = 1, .heads = 4, .width = 32, .context = 64, .vocab = 24};
  MeshConfig config{.tensor = 4};
  Graph step = test::step_of(model);
  Graph got = test::compiled(step, test::async_context(config, Precision::kFp32, true));
  EXPECT_GE(count_ops(got, "permute"), 12);
  EXPECT_EQ(test::find_sharding_fault(step, got, step_mesh(config), test::step_arguments(step), 1e-6), "");
}

}  // namespace
}  // namespace tokamak
