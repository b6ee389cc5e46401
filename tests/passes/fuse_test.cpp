#include "passes/fuse.h"

#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/group_form.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "passes/form_groups.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::count_ops;
using test::parse;

Graph fused(std::string_view text, PassContext context = {}) {
  Graph before = parse(text), after = parse(text);
  form_groups(after, context);
  fuse(after, context);
  verify(after);
  EXPECT_EQ(print(parse(print(after))), print(after));
  test::expect_same_meaning(before, after, 1e-12);
  return after;
}

TEST(Fuse, MergesAChainAndItsConstants) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[2,3]
    %1 = constant() {dtype="f32", shape=[], value=2.0} : f32[]
    %2 = mul(%0, %1) : f32[2,3]
    %3 = exp(%2) : f32[2,3]
    result y = %3
  })");
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[2,3]
    %1 = flat(%0) : f32[2,3] {
      graph body {
        input a0 = %0 : f32[2,3]
        %1 = constant() {dtype="f32", shape=[1,1], value=2.0} : f32[1,1]
        %2 = mul(%0, %1) : f32[2,3]
        %3 = exp(%2) : f32[2,3]
        result r0 = %3
      }
    }
    result y = %1
  })"));
}

TEST(Fuse, KeepsAValueThatOthersRead) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[2,3]
    input w = %1 : f32[3,2]
    input z = %2 : f32[2,3]
    %3 = add(%0, %2) : f32[2,3]
    %4 = exp(%3) : f32[2,3]
    %5 = matmul(%3, %1) {trans_a=false, trans_b=false} : f32[2,2]
    result y = %4
    result m = %5
  })");
  ASSERT_EQ(after.nodes().size(), 2u) << print(after);
  EXPECT_EQ(after.nodes()[0].outputs.size(), 2u);
}

TEST(Fuse, DoesNotCloseACycle) {
  // exp reads the matmul of add's value: add and exp cannot run as one.
  Graph after = fused(R"(graph g {
    input x = %0 : f32[2,2]
    input z = %1 : f32[2,2]
    %2 = mul(%0, %1) : f32[2,2]
    %3 = matmul(%2, %0) {trans_a=false, trans_b=false} : f32[2,2]
    %4 = add(%2, %3) : f32[2,2]
    result y = %4
  })");
  EXPECT_EQ(count_ops(after, "flat"), 2) << print(after);
}

TEST(Fuse, NeverMixesRowAndColumnReductions) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[3,4]
    %1 = softmax(%0) : f32[3,4]
    %2 = reduce_sum(%1) {dims=[0], keep=false} : f32[4]
    result y = %2
  })");
  EXPECT_EQ(count_ops(after, "row"), 1);
  EXPECT_EQ(count_ops(after, "column"), 1);
}

TEST(Fuse, ColumnResultsAreReadByNothingInTheBody) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[3,4]
    %1 = neg(%0) : f32[3,4]
    %2 = reduce_sum(%1) {dims=[0], keep=true} : f32[1,4]
    %3 = sub(%1, %2) : f32[3,4]
    result y = %3
  })");
  EXPECT_EQ(count_ops(after, "column"), 1);
  EXPECT_EQ(count_ops(after, "flat"), 1);
}

TEST(Fuse, JoinsResidualNormAndWhatFollows) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[2,3,4]
    input r = %1 : f32[2,3,4]
    param gain = %2 : f32[4]
    param bias = %3 : f32[4]
    %4 = add(%0, %1) : f32[2,3,4]
    %5, %6, %7 = layer_norm(%4, %2, %3) {eps=1e-05} : f32[2,3,4], f32[2,3,1], f32[2,3,1]
    %8 = gelu(%5) : f32[2,3,4]
    result sum = %4
    result y = %8
    result mean = %6
  })");
  ASSERT_EQ(after.nodes().size(), 1u) << print(after);
  EXPECT_EQ(count_ops(after, "row"), 1);
}

TEST(Fuse, LooksThroughReshapes) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[2,3,4]
    input t = %1 : i32[6]
    %2 = exp(%0) : f32[2,3,4]
    %3 = reshape(%2) {shape=[6,4]} : f32[6,4]
    %4, %5 = cross_entropy(%3, %1) {classes=4} : f32[6], f32[6]
    %6 = neg(%4) : f32[6]
    %7 = reshape(%6) {shape=[2,3]} : f32[2,3]
    %8 = exp(%7) : f32[2,3]
    result y = %8
  })");
  ASSERT_EQ(after.nodes().size(), 1u) << print(after);
  EXPECT_EQ(group_space(after.nodes()[0]).rows, 6);
}

TEST(Fuse, SumOfAllThenScalarMaths) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[5]
    %1 = reduce_sum(%0) {dims=[0], keep=false} : f32[]
    %2 = constant() {dtype="f32", shape=[], value=0.2} : f32[]
    %3 = mul(%1, %2) : f32[]
    result y = %3
  })");
  EXPECT_EQ(after.nodes().size(), 1u) << print(after);
}

TEST(Fuse, CheapProducersAreComputedByEveryReader) {
  Graph after = fused(R"(graph g {
    input x = %0 : bf16[3,4]
    %1 = cast(%0) {to="f32"} : f32[3,4]
    %2 = reduce_max(%1) {dims=[1], keep=false} : f32[3]
    %3 = reduce_sum(%1) {dims=[0], keep=false} : f32[4]
    result a = %2
    result b = %3
  })");
  EXPECT_EQ(after.nodes().size(), 2u) << print(after);
}

TEST(Fuse, LossAndItsGradientBecomeOneKernel) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[3,4]
    input t = %1 : i32[3]
    %2, %3 = cross_entropy(%0, %1) {classes=3} : f32[3], f32[3]
    %4 = constant() {dtype="f32", shape=[3], value=0.25} : f32[3]
    %5 = cross_entropy_grad(%0, %1, %3, %4) {classes=3} : f32[3,4]
    result y = %2
    result dx = %5
  })");
  EXPECT_EQ(after.nodes().size(), 1u) << print(after);
}

const char* kCausal = R"(graph g {
  input s = %0 : bf16[2,3,4,4]
  input d = %1 : bf16[6,16]
  %2 = iota() {dim=0, shape=[4,1]} : f32[4,1]
  %3 = iota() {dim=1, shape=[1,4]} : f32[1,4]
  %4 = less(%2, %3) : f32[4,4]
  %5 = constant() {dtype="f32", shape=[], value=-inf} : f32[]
  %6 = select(%4, %5, %0) : f32[2,3,4,4]
  %7 = softmax(%6) : f32[2,3,4,4]
  %8 = cast(%7) {to="bf16"} : bf16[2,3,4,4]
  %9 = reshape(%8) {shape=[6,16]} : bf16[6,16]
  %10 = matmul(%9, %9) {trans_a=false, trans_b=true} : bf16[6,6]
  %11 = matmul(%10, %1) {trans_a=false, trans_b=false} : bf16[6,16]
  %12 = reshape(%11) {shape=[2,3,4,4]} : bf16[2,3,4,4]
  %13 = softmax_grad(%8, %12) : bf16[2,3,4,4]
  %14 = constant() {dtype="f32", shape=[], value=0.0} : f32[]
  %15 = select(%4, %14, %13) : f32[2,3,4,4]
  %16 = cast(%15) {to="bf16"} : bf16[2,3,4,4]
  result y = %10
  result ds = %16
})";

TEST(Fuse, CausalMaskIsMadeInsideSoftmaxAndItsGradient) {
  Graph after = fused(kCausal);
  EXPECT_EQ(count_ops(after, "row"), 2) << print(after);
  EXPECT_EQ(count_ops(after, "flat"), 0) << print(after);
  const Node& softmax = after.nodes()[0];
  ASSERT_EQ(softmax.inputs.size(), 1u);  // the scores
  ASSERT_EQ(softmax.outputs.size(), 1u);
  EXPECT_EQ(group_space(softmax).rows, 24);
  EXPECT_NE(print(after).find("iota() {dim=0, period=4, shape=[24,1]}"), std::string::npos) << print(after);
}

TEST(Fuse, AMaskThatIsReadElsewhereStays) {
  std::string text = kCausal;
  text.insert(text.rfind('}'), "  result mask = %4\n");
  Graph after = fused(text);
  EXPECT_EQ(count_ops(after, "row"), 2) << print(after);
  EXPECT_EQ(count_ops(after, "flat"), 1) << print(after);
}

TEST(Fuse, AMaskBesideAVectorIsRead) {
  // The bias varies along all of (4,4) as well and cannot be told from an index, so the rows stay 16 wide.
  Graph after = fused(R"(graph g {
    input s = %0 : f32[6,4,4]
    input bias = %1 : f32[4,4]
    %2 = iota() {dim=0, shape=[4,1]} : f32[4,1]
    %3 = iota() {dim=1, shape=[1,4]} : f32[1,4]
    %4 = less(%2, %3) : f32[4,4]
    %5 = add(%0, %1) : f32[6,4,4]
    %6 = select(%4, %1, %5) : f32[6,4,4]
    %7 = softmax(%6) : f32[6,4,4]
    result y = %7
  })");
  EXPECT_EQ(count_ops(after, "row"), 1) << print(after);
  EXPECT_EQ(print(after).find("period"), std::string::npos) << print(after);
}

TEST(Fuse, AnIndexIsKeptWhereTheMatrixIsCutElsewhere) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[2,3]
    %1 = iota() {dim=1, shape=[2,3]} : f32[2,3]
    %2 = add(%1, %0) : f32[2,3]
    %3 = reshape(%2) {shape=[6]} : f32[6]
    %4 = iota() {dim=0, shape=[2,3]} : f32[2,3]
    %5 = reshape(%4) {shape=[6]} : f32[6]
    %6 = mul(%3, %5) : f32[6]
    %7 = exp(%6) : f32[6]
    result y = %7
  })");
  EXPECT_EQ(print(after).find("shape=[1,6]} : f32"), std::string::npos) << print(after);
}

TEST(Fuse, RandomNumbersKeepTheirIndex) {
  Graph after = fused(R"(graph g {
    input x = %0 : f32[2,3,4]
    input rng = %1 : i32[2]
    %2 = dropout(%0, %1) {p=0.25, stream=1} : f32[2,3,4]
    %3 = reshape(%2) {shape=[6,4]} : f32[6,4]
    %4 = softmax(%3) : f32[6,4]
    result y = %4
  })");
  EXPECT_EQ(after.nodes().size(), 1u) << print(after);
}

const char* kLinear = R"(graph g {
  input x = %0 : f32[2,3,4]
  param w = %1 : f32[4,5]
  param b = %2 : f32[5]
  %3 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,3,5]
  %4 = add(%3, %2) : f32[2,3,5]
  %5 = gelu(%4) : f32[2,3,5]
  result y = %5
})";

TEST(Fuse, MatmulTakesBiasAndGelu) {
  EXPECT_EQ(print(fused(kLinear)), test::canonical(R"(graph g {
    input x = %0 : f32[2,3,4]
    param w = %1 : f32[4,5]
    param b = %2 : f32[5]
    %3 = fused_matmul(%0, %1, %2) : f32[2,3,5] {
      graph body {
        input a0 = %0 : f32[2,3,4]
        input a1 = %1 : f32[4,5]
        input a2 = %2 : f32[5]
        %3 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,3,5]
        %4 = add(%3, %2) : f32[2,3,5]
        %5 = gelu(%4) : f32[2,3,5]
        result r0 = %5
      }
    }
    result y = %3
  })"));
}

TEST(Fuse, MatmulTakesOnlyWhatTheTargetCan) {
  PassContext context;
  context.target.matmul_function = false;
  Graph bias = fused(kLinear, context);
  EXPECT_EQ(count_ops(bias, "fused_matmul"), 1);
  EXPECT_EQ(count_ops(bias, "flat"), 1);
  context.target.matmul_bias = false;
  Graph none = fused(kLinear, context);
  EXPECT_EQ(count_ops(none, "fused_matmul"), 0);
  EXPECT_EQ(count_ops(none, "flat"), 1);
}

TEST(Fuse, MatmulLeavesGeluWhenItsOperandIsReadElsewhere) {
  std::string text = kLinear;
  text.insert(text.rfind('}'), "  result h = %4\n");
  Graph after = fused(text);
  EXPECT_EQ(count_ops(after, "fused_matmul"), 1);
  EXPECT_EQ(count_ops(after, "flat"), 1);
}

TEST(Fuse, RandomGraphsKeepTheirMeaning) {
  const Shape shapes[] = {{2, 3, 4}, {2, 3, 1}, {4}, {}, {3, 4}};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    uint64_t count = 0;
    auto pick = [&](size_t below) { return size_t(philox4x32(seed, count++)[0] % below); };
    Graph graph("random");
    GraphBuilder g(graph);
    ValueIds values;
    for (const Shape& shape : shapes)
      values.push_back(g.input("x" + std::to_string(values.size()), {DType::kF32, shape}));
    for (int n = 0; n < 14; ++n) {
      ValueId a = values[pick(values.size())], b = values[pick(values.size())];
      const Shape shape = g.shape(a);
      try {
        switch (pick(9)) {
          case 0: values.push_back(mul(g, a, b)); break;
          case 1: values.push_back(add(g, a, constant(g, 0.5))); break;
          case 2: values.push_back(tanh(g, a)); break;
          case 3: values.push_back(reduce_sum(g, a, {int64_t(shape.size()) - 1}, pick(2) == 0)); break;
          case 4: values.push_back(reduce_max(g, a, {0, 1}, pick(2) == 0)); break;
          case 5: values.push_back(softmax(g, a)); break;
          case 6: values.push_back(reshape(g, a, {-1, shape.empty() ? 1 : shape.back()})); break;
          case 7: values.push_back(reshape(g, a, {2, 3, 4})); break;
          case 8: values.push_back(matmul(g, a, reshape(g, b, {4, -1}))); break;
        }
      } catch (const std::exception&) {
        continue;  // these shapes do not go together
      }
    }
    for (size_t i = 0; i < values.size(); i += 2)
      graph.add_result("y" + std::to_string(i), values[values.size() - 1 - i]);
    fused(print(graph));
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed << "\n" << print(graph);
      return;
    }
  }
}

}  // namespace
}  // namespace tokamak
