// What a policy decides, and that autocast, prices and kernels obey it.
#include "passes/format_policy.h"

#include "cost/flop_rate.h"
#include "ops/matmul.h"
#include "ops/matmul_form.h"
#include "passes/autocast.h"
#include "tests/passes/training_step.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using test::parse;

constexpr MatmulFormats kTf32{NumberFormat::kTf32, NumberFormat::kTf32};

PassContext context_of(Precision precision) {
  PassContext context;
  context.target.f32_flops = 1e12;
  context.target.tf32_flops = 8e12;
  context.target.bf16_flops = 16e12;
  context.options.precision = precision;
  context.options.disable_passes = {"pad_vocab"};
  return context;
}

// bf16 but for weight gradients, which are TF32.
PassContext mixed() {
  PassContext context = context_of(Precision::kBf16);
  MatmulFormats bf16 = uniform_formats(NumberFormat::kBf16);
  context.formats = policy_by_use(bf16, bf16, kTf32);
  return context;
}

TEST(FormatPolicy, APrecisionIsOneFormat) {
  Graph graph =
      parse("graph g { input x = %0 : f32[4,4] %1 = matmul(%0, %0) {trans_a=false, trans_b=false} : f32[4,4] }");
  Target with_units{.tf32_flops = 1}, without;
  auto formats = [&](Precision precision, const Target& target) {
    return policy_of(precision, target)({graph, graph.nodes()[0], ProductUse::kWeightGradient});
  };
  EXPECT_EQ(formats(Precision::kFp32, with_units), MatmulFormats());
  EXPECT_EQ(formats(Precision::kTf32, with_units), kTf32);
  EXPECT_EQ(formats(Precision::kTf32, without), MatmulFormats());
  EXPECT_EQ(formats(Precision::kBf16, without), uniform_formats(NumberFormat::kBf16));
  EXPECT_EQ(formats(Precision::kFp16, without), uniform_formats(NumberFormat::kF16));
}

TEST(FormatPolicy, Tf32MarksMatmulsAndAttentionInF32) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[1,3,12]
    param w = %1 : f32[4,4]
    param u = %2 : bf16[4,4]
    %3, %4 = attention(%0) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} : f32[1,3,4], f32[1,2,3]
    %5 = matmul(%3, %1) {trans_a=false, trans_b=false} #backward : f32[1,3,4]
    %6 = matmul(%2, %2) {trans_a=false, trans_b=false} : bf16[4,4]
    %7 = add(%5, %5) : f32[1,3,4]
    result y = %7
    result z = %6
  })");
  EXPECT_TRUE(autocast(graph, context_of(Precision::kTf32)));
  EXPECT_EQ(print(graph), test::canonical(R"(graph g {
    input x = %0 : f32[1,3,12]
    param w = %1 : f32[4,4]
    param u = %2 : bf16[4,4]
    %3, %4 = attention(%0) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0, tf32=true} : f32[1,3,4], f32[1,2,3]
    %5 = matmul(%3, %1) {tf32=true, trans_a=false, trans_b=false} #backward : f32[1,3,4]
    %6 = matmul(%2, %2) {trans_a=false, trans_b=false} : bf16[4,4]
    %7 = add(%5, %5) : f32[1,3,4]
    result y = %7
    result z = %6
  })"));
  EXPECT_FALSE(autocast(graph, context_of(Precision::kTf32))) << "marked twice";
}

TEST(FormatPolicy, Tf32NeedsUnits) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[4,4]
    %1 = matmul(%0, %0) {trans_a=false, trans_b=false} : f32[4,4]
    result y = %1
  })");
  PassContext context = context_of(Precision::kTf32);
  context.target.tf32_flops = 0;
  EXPECT_FALSE(autocast(graph, context));
  EXPECT_FALSE(graph.nodes()[0].attrs.find("tf32"));
}

// Fused with its bias, a product is priced by the node inside of the group's body.
TEST(FormatPolicy, SurvivesFusingAndSetsTheRate) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[4,4]
    param b = %1 : f32[4]
    %2 = matmul(%0, %0) {trans_a=false, trans_b=false} : f32[4,4]
    %3 = add(%2, %1) : f32[4,4]
    result y = %3
  })");
  PassContext context = context_of(Precision::kTf32);
  run_passes(graph, PassStage::kStep, context);
  ASSERT_EQ(graph.nodes().size(), 1u);
  const Node& group = graph.nodes()[0];
  const Node& matmul = group.body->nodes()[0];
  EXPECT_TRUE(matmul.attrs.get_bool("tf32")) << print(graph);
  EXPECT_EQ(flop_rate(*group.body, matmul, context.target), 8e12);
}

TEST(FormatPolicy, GivesEachUseItsFormats) {
  Graph before = parse(R"(graph g {
    input x = %0 : f32[8,4]
    param w = %1 : f32[4,4]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[8,4]
    %3 = exp(%2) : f32[8,4]
    %4 = matmul(%3, %1) {trans_a=false, trans_b=true} #backward : f32[8,4]
    %5 = tanh(%4) #backward : f32[8,4]
    %6 = matmul(%0, %5) {trans_a=true, trans_b=false} #backward : f32[4,4]
    %7 = add(%1, %6) #update : f32[4,4]
    update %1 = %7
  })");
  Graph after = before;
  EXPECT_TRUE(autocast(after, mixed()));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[8,4]
    param w = %1 : f32[4,4]
    %2 = cast(%0) {to="bf16"} : bf16[8,4]
    %3 = cast(%1) {to="bf16"} : bf16[4,4]
    %4 = matmul(%2, %3) {trans_a=false, trans_b=false} : bf16[8,4]
    %5 = exp(%4) : bf16[8,4]
    %6 = matmul(%5, %3) {trans_a=false, trans_b=true} #backward : bf16[8,4]
    %7 = tanh(%6) #backward : bf16[8,4]
    %8 = cast(%7) {to="f32"} #backward : f32[8,4]
    %9 = matmul(%0, %8) {tf32=true, trans_a=true, trans_b=false} #backward : f32[4,4]
    %10 = add(%1, %9) #update : f32[4,4]
    update %1 = %10
  })"));
  test::expect_same_meaning(before, after, 0.05);
}

// Operands and result of their own types, for a single product that the policy knows by its size.
TEST(FormatPolicy, CanTellSingleProductsApart) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[8,4]
    param w = %1 : f32[4,4]
    param u = %2 : f32[4,6]
    %3 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[8,4]
    %4 = matmul(%3, %2) {trans_a=false, trans_b=false} : f32[8,6]
    result y = %4
  })");
  PassContext context = context_of(Precision::kFp32);
  context.formats = [](const Product& p) {
    if (p.graph.shape(p.node.outputs[0]).back() == 6)
      return MatmulFormats{NumberFormat::kF32, NumberFormat::kBf16, DType::kF32, DType::kF32};
    return MatmulFormats{NumberFormat::kBf16, NumberFormat::kBf16, DType::kF32, DType::kF32};
  };
  EXPECT_TRUE(autocast(graph, context));
  EXPECT_EQ(print(graph), test::canonical(R"(graph g {
    input x = %0 : f32[8,4]
    param w = %1 : f32[4,4]
    param u = %2 : f32[4,6]
    %3 = cast(%0) {to="bf16"} : bf16[8,4]
    %4 = cast(%1) {to="bf16"} : bf16[4,4]
    %5 = matmul(%3, %4) {result="f32", trans_a=false, trans_b=false} : f32[8,4]
    %6 = cast(%2) {to="bf16"} : bf16[4,6]
    %7 = matmul(%5, %6) {result="f32", trans_a=false, trans_b=false} : f32[8,6]
    result y = %7
  })"));
}

const ModelConfig kTiny{.layers = 2, .heads = 2, .width = 8, .context = 6, .vocab = 24};

// Of the products of a step, groups looked into, how many have these formats and belong to that phase.
std::map<std::pair<Phase, NumberFormat>, int> count_products(const Graph& graph) {
  std::map<std::pair<Phase, NumberFormat>, int> count;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "matmul" && node.op->name != "fused_matmul") continue;
    MatmulFormats formats = read_matmul(graph, node).formats;
    EXPECT_EQ(formats.a, formats.b) << print(graph);
    ++count[{node.phase, formats.a}];
  }
  return count;
}

// A whole step, of whose 9 products (4 of a block and the head) each has a weight gradient, with every pass behind.
TEST(FormatPolicy, HoldsForAWholeStep) {
  Graph before = test::step_of(kTiny, 4), after = before;
  PassContext context = mixed();
  run_passes(after, PassStage::kStep, context);
  std::map<std::pair<Phase, NumberFormat>, int> count = count_products(after);
  EXPECT_EQ((count[{Phase::kForward, NumberFormat::kBf16}]), 9) << print(after);
  EXPECT_EQ((count[{Phase::kBackward, NumberFormat::kBf16}]), 9);
  EXPECT_EQ((count[{Phase::kBackward, NumberFormat::kTf32}]), 9);
  EXPECT_EQ(count.size(), 3u);
  test::expect_same_meaning(before, after, 0.2, 3, 24);
}

}  // namespace
}  // namespace tokamak
