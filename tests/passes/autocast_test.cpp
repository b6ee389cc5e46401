#include "passes/autocast.h"

#include "graph/op_def.h"
#include "passes/eliminate_dead_code.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/format.h>

namespace tokamak {
namespace {

using test::parse;

PassContext in_bf16() {
  PassContext context;
  context.options.precision = Precision::kBf16;
  return context;
}

TEST(Autocast, CastsInputsOfMatmulsButNotForNorms) {
  Graph before = parse(R"(graph g {
    input x = %0 : f32[2,4]
    param w = %1 : f32[4,4]
    param b = %2 : f32[4]
    param gain = %3 : f32[4]
    %4 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,4]
    %5 = add(%4, %2) : f32[2,4]
    %6, %7, %8 = layer_norm(%5, %3) {eps=1e-05} : f32[2,4], f32[2,1], f32[2,1]
    %9 = matmul(%6, %1) {trans_a=false, trans_b=false} #backward : f32[2,4]
    result y = %9
    update %1 = %1
  })");
  Graph after = before;
  EXPECT_TRUE(autocast(after, in_bf16()));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[2,4]
    param w = %1 : f32[4,4]
    param b = %2 : f32[4]
    param gain = %3 : f32[4]
    %4 = cast(%0) {to="bf16"} : bf16[2,4]
    %5 = cast(%1) {to="bf16"} : bf16[4,4]
    %6 = matmul(%4, %5) {trans_a=false, trans_b=false} : bf16[2,4]
    %7 = cast(%2) {to="bf16"} : bf16[4]
    %8 = add(%6, %7) : bf16[2,4]
    %9, %10, %11 = layer_norm(%8, %3) {eps=1e-05} : bf16[2,4], f32[2,1], f32[2,1]
    %12 = matmul(%9, %5) {trans_a=false, trans_b=false} #backward : bf16[2,4]
    %13 = cast(%12) {to="f32"} #backward : f32[2,4]
    result y = %13
    update %1 = %1
  })"));
  test::expect_same_meaning(before, after, 0.05);
}

TEST(Autocast, ConstantsFollowWhatTheyMeet) {
  Graph before = parse(R"(graph g {
    input x = %0 : f32[2,4]
    input s = %1 : f32[]
    param w = %2 : f32[4,4]
    %3 = matmul(%0, %2) {trans_a=false, trans_b=false} : f32[2,4]
    %4 = constant() {dtype="f32", shape=[], value=0.3} : f32[]
    %5 = mul(%3, %4) : f32[2,4]
    %6 = mul(%3, %1) : f32[2,4]
    %7 = add(%4, %1) : f32[]
    result constant = %5
    result computed = %6
    result scalars = %7
  })");
  Graph after = before;
  EXPECT_TRUE(autocast(after, in_bf16()));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[2,4]
    input s = %1 : f32[]
    param w = %2 : f32[4,4]
    %3 = cast(%0) {to="bf16"} : bf16[2,4]
    %4 = cast(%2) {to="bf16"} : bf16[4,4]
    %5 = matmul(%3, %4) {trans_a=false, trans_b=false} : bf16[2,4]
    %6 = constant() {dtype="f32", shape=[], value=0.3} : f32[]
    %7 = mul(%5, %6) : f32[2,4]
    %8 = cast(%7) {to="bf16"} : bf16[2,4]
    %9 = mul(%5, %1) : f32[2,4]
    %10 = add(%6, %1) : f32[]
    %11 = cast(%8) {to="f32"} : f32[2,4]
    result constant = %11
    result computed = %9
    result scalars = %10
  })"));
  test::expect_same_meaning(before, after, 0.05);
}

TEST(Autocast, AConstantThatTheLowTypeHoldsTakesIt) {
  Graph before = parse(R"(graph g {
    input x = %0 : f32[2,4]
    param w = %1 : f32[4,4]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,4]
    %3 = constant() {dtype="f32", shape=[], value=0.125} : f32[]
    %4 = mul(%2, %3) : f32[2,4]
    %5 = matmul(%4, %1) {trans_a=false, trans_b=false} : f32[2,4]
    result y = %5
  })");
  Graph after = before;
  EXPECT_TRUE(autocast(after, in_bf16()));
  eliminate_dead_code(after, {});
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input x = %0 : f32[2,4]
    param w = %1 : f32[4,4]
    %2 = cast(%0) {to="bf16"} : bf16[2,4]
    %3 = cast(%1) {to="bf16"} : bf16[4,4]
    %4 = matmul(%2, %3) {trans_a=false, trans_b=false} : bf16[2,4]
    %5 = constant() {dtype="bf16", shape=[], value=0.125} : bf16[]
    %6 = mul(%4, %5) : bf16[2,4]
    %7 = matmul(%6, %3) {trans_a=false, trans_b=false} : bf16[2,4]
    %8 = cast(%7) {to="f32"} : f32[2,4]
    result y = %8
  })"));
  test::expect_same_meaning(before, after, 0.05);
}

TEST(Autocast, DoesNotFireWithoutMatmuls) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[2,4]
    %1 = softmax(%0) : f32[2,4]
    result y = %1
  })");
  EXPECT_FALSE(autocast(graph, in_bf16()));
}

TEST(Autocast, KeepsProbabilitiesThatAMatmulReadsOnce) {
  Graph before = parse(R"(graph g {
    input s = %0 : f32[2,4]
    input v = %1 : f32[4,4]
    input dy = %2 : f32[2,4]
    %3 = softmax(%0) : f32[2,4]
    %4 = matmul(%3, %1) {trans_a=false, trans_b=false} : f32[2,4]
    %5 = softmax_grad(%3, %2) #backward : f32[2,4]
    %6 = softmax(%5) : f32[2,4]
    result y = %4
    result ds = %6
  })");
  Graph after = before;
  EXPECT_TRUE(autocast(after, in_bf16()));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input s = %0 : f32[2,4]
    input v = %1 : f32[4,4]
    input dy = %2 : f32[2,4]
    %3 = softmax(%0) : f32[2,4]
    %4 = cast(%3) {to="bf16"} : bf16[2,4]
    %5 = cast(%1) {to="bf16"} : bf16[4,4]
    %6 = matmul(%4, %5) {trans_a=false, trans_b=false} : bf16[2,4]
    %7 = softmax_grad(%4, %2) #backward : bf16[2,4]
    %8 = softmax(%7) : bf16[2,4]
    %9 = cast(%6) {to="f32"} : f32[2,4]
    %10 = cast(%8) {to="f32"} : f32[2,4]
    result y = %9
    result ds = %10
  })"));
  test::expect_same_meaning(before, after, 0.05);
}

// What one product of the update makes ready for the next is stored low, however f32 its parts are; in the model's own
// passes it is not.
TEST(Autocast, KeepsWhatProductsOfTheUpdateReadOnce) {
  for (const char* phase : {"#update ", ""}) {
    Graph before = parse(fmt::format(R"(graph g {{
      input x = %0 : f32[4,4]
      input s = %1 : f32[4,4]
      %2 = matmul(%0, %0) {{trans_a=false, trans_b=false}} {0}: f32[4,4]
      %3 = mul(%2, %1) {0}: f32[4,4]
      %4 = matmul(%3, %3) {{trans_a=false, trans_b=false}} {0}: f32[4,4]
      %5 = sub(%3, %4) {0}: f32[4,4]
      result y = %5
    }})",
                                     phase));
    Graph after = before;
    EXPECT_TRUE(autocast(after, in_bf16()));
    DType read = DType::kF32;
    for (const Node& node : after.nodes())
      if (node.op->name == "sub") read = after.dtype(node.inputs[0]);
    EXPECT_EQ(read, *phase ? DType::kBF16 : DType::kF32);
  }
}

TEST(Autocast, KeepsProbabilitiesLowBeforeDropout) {
  Graph graph = parse(R"(graph g {
    input s = %0 : f32[2,4]
    input v = %1 : f32[4,4]
    input rng = %2 : i32[2]
    %3 = softmax(%0) : f32[2,4]
    %4 = dropout(%3, %2) {p=0.5, stream=0} : f32[2,4]
    %5 = matmul(%4, %1) {trans_a=false, trans_b=false} : f32[2,4]
    result y = %5
  })");
  EXPECT_TRUE(autocast(graph, in_bf16()));
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "dropout") continue;
    EXPECT_EQ(graph.dtype(node.inputs[0]), DType::kBF16);
  }
  EXPECT_EQ(test::count_ops(graph, "cast"), 3) << print(graph);  // p, v and y
}

TEST(Autocast, LeavesNoViewThatNothingReads) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[2,2,4]
    input w = %1 : f32[4,4]
    %2 = all_gather(%0) {axis="tensor", dims=[0], size=2} : f32[4,2,4]
    %3 = reshape(%2) {shape=[8,4]} : f32[8,4]
    %4 = matmul(%3, %1) {trans_a=false, trans_b=false} : f32[8,4]
    result y = %4
  })");
  ASSERT_TRUE(autocast(graph, in_bf16()));
  for (const Node& node : graph.nodes())
    if (node.op->name == "reshape") {
      EXPECT_EQ(graph.dtype(node.outputs[0]), DType::kBF16) << print(graph, node);
    }
}

TEST(Autocast, ResidualsStayInTheWidestType) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[2,4]
    param w = %1 : f32[4,4]
    %2 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,4]
    %3 = add(%0, %2) : f32[2,4]
    result y = %3
  })");
  autocast(graph, in_bf16());
  EXPECT_EQ(graph.dtype(graph.nodes().back().outputs[0]), DType::kF32);
  EXPECT_EQ(graph.dtype(graph.nodes().back().inputs[1]), DType::kBF16);
}

TEST(Autocast, GivesTheOptimizerGradientsAsTheyAre) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[2,4]
    input dy = %1 : f32[2,4]
    param w = %2 : f32[4,4]
    state m = %3 : f32[4,4]
    state v = %4 : f32[4,4]
    input lr = %5 : f32[]
    input step = %6 : f32[]
    state sum = %7 : f32[4,4]
    %8 = matmul(%0, %1) {trans_a=true, trans_b=false} : f32[4,4]
    %9 = sum_squares(%8) : f32[]
    %10, %11, %12 = adamw(%2, %8, %3, %4, %5, %9, %6) {beta1=0.9, beta2=0.95, decay=0.0, eps=1e-08} : f32[4,4], f32[4,4], f32[4,4]
    %13 = add(%7, %8) : f32[4,4]
    update %2 = %10
    update %3 = %11
    update %4 = %12
    update %7 = %13
  })");
  EXPECT_TRUE(autocast(graph, in_bf16()));
  verify(graph);
  EXPECT_EQ(test::count_ops(graph, "cast"), 2);  // x and dy
  for (const Node& node : graph.nodes())
    if (node.op->name == "adamw") {
      EXPECT_EQ(graph.dtype(node.inputs[1]), DType::kBF16);
      for (ValueId output : node.outputs) EXPECT_EQ(graph.dtype(output), DType::kF32);
    }
  EXPECT_EQ(graph.dtype(graph.updates()[3].value), DType::kF32);
}

TEST(Autocast, AddsInOrderInFullPrecision) {
  for (bool ordered : {false, true}) {
    Graph graph = parse(fmt::format(R"(graph g {{
      input x = %0 : f32[2,4]
      input dy = %1 : f32[2,4]
      %2 = matmul(%0, %1) {{trans_a=true, trans_b=false}} : f32[4,4]
      %3 = all_reduce(%2) {{axis="data", ordered={}, reduction="sum", size=2}} : f32[4,4]
      %4 = sum_squares(%3) : f32[]
      result norm = %4
    }})",
                                    ordered));
    EXPECT_TRUE(autocast(graph, in_bf16()));
    for (const Node& node : graph.nodes()) {
      if (node.op->name != "all_reduce") continue;
      EXPECT_EQ(graph.dtype(node.outputs[0]), ordered ? DType::kF32 : DType::kBF16);
    }
  }
}

TEST(Autocast, AChoiceBetweenLowRowsIsLow) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[4,4]
    input y = %1 : f32[4,4]
    input rank = %2 : i32[]
    %3 = iota() {dim=0, shape=[4,1]} : f32[4,1]
    %4 = less(%3, %2) : f32[4,1]
    %5 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[4,4]
    %6 = matmul(%1, %0) {trans_a=false, trans_b=false} : f32[4,4]
    %7 = select(%4, %5, %6) : f32[4,4]
    %8 = sum_squares(%7) : f32[]
    result norm = %8
  })");
  EXPECT_TRUE(autocast(graph, in_bf16()));
  for (const Node& node : graph.nodes())
    if (node.op->name == "select") {
      EXPECT_EQ(graph.dtype(node.outputs[0]), DType::kBF16);
    }
}

// A rank that has a part of the vocabulary makes zeros of the other tokens' embeddings.
TEST(Autocast, AResidualStreamOfAPartOfTheVocabularyIsLow) {
  Graph graph = parse(R"(graph g {
    input tokens = %0 : i32[2,4]
    param wte = %1 : f32[8,4]
    %2 = cast(%0) {to="f32"} : f32[2,4]
    %3 = equal(%2, %2) : f32[2,4]
    %4 = embedding(%1, %0) : f32[2,4,4]
    %5 = reshape(%3) {shape=[2,4,1]} : f32[2,4,1]
    %6 = mul(%4, %5) : f32[2,4,4]
    %7 = matmul(%6, %1) {trans_a=false, trans_b=true} : f32[2,4,8]
    result y = %7
  })");
  PassContext context = in_bf16();
  context.options.low_residual = true;
  EXPECT_TRUE(autocast(graph, context));
  for (const Node& node : graph.nodes())
    if (node.op->name == "mul") EXPECT_EQ(graph.dtype(node.outputs[0]), DType::kBF16);
}

TEST(Autocast, ATiedGradientIsAddedOntoTheLowOne) {
  Graph graph = parse(R"(graph g {
    input x = %0 : f32[2,4]
    input dy = %1 : f32[2,4]
    input ids = %2 : i32[2]
    %3 = matmul(%0, %1) {trans_a=true, trans_b=false} : f32[4,4]
    %4 = embedding_grad(%1, %2, %3) {rows=4} : f32[4,4]
    %5 = sum_squares(%4) : f32[]
    result norm = %5
  })");
  EXPECT_TRUE(autocast(graph, in_bf16()));
  verify(graph);
  for (const Node& node : graph.nodes())
    if (node.op->name == "embedding_grad") {
      EXPECT_EQ(graph.dtype(node.inputs[0]), DType::kF32);
      EXPECT_EQ(graph.dtype(node.outputs[0]), DType::kBF16);
    }
}

TEST(Autocast, LeavesWhatAttentionNeedsInFullPrecision) {
  Graph before = parse(R"(graph g {
    input qkv = %0 : f32[1,3,12]
    input dy = %1 : f32[1,3,4]
    %2, %3 = attention(%0) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} : f32[1,3,4], f32[1,2,3]
    %4 = attention_grad(%0, %2, %3, %1) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} : f32[1,3,12]
    result y = %2
    result dqkv = %4
  })");
  Graph after = before;
  EXPECT_TRUE(autocast(after, in_bf16()));
  verify(after);
  for (const Node& node : after.nodes())
    if (node.op->name == "attention_grad") {
      EXPECT_EQ(after.dtype(node.inputs[0]), DType::kBF16);
      EXPECT_EQ(after.dtype(node.inputs[2]), DType::kF32);
      EXPECT_EQ(after.dtype(node.inputs[3]), DType::kBF16);
    }
  test::expect_same_meaning(before, after, 0.05);
}

}  // namespace
}  // namespace tokamak
