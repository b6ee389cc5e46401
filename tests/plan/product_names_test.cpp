#include "plan/product_names.h"
#include "ops/parameter_kind.h"

#include "graph/text.h"
#include "ops/all_ops.h"
#include "plan/kernel_lines.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// x W of two blocks that are alike, and the gradients of the second.
constexpr const char* kStep = R"(graph step {
  input x = %0 : f32[8,4]
  input dy = %1 : f32[8,4]
  param h.0.mlp.c_fc.weight = %2 : f32[4,4]
  param h.1.mlp.c_fc.weight = %3 : f32[4,4]
  state grad.h.0.mlp.c_fc.weight = %4 {of="h.0.mlp.c_fc.weight", role="gradient_sum"} : f32[4,4]
  state grad.h.1.mlp.c_fc.weight = %5 {of="h.1.mlp.c_fc.weight", role="gradient_sum"} : f32[4,4]
  %6 = matmul(%0, %2) {trans_a=false, trans_b=false} : f32[8,4]
  %7 = matmul(%6, %3) {trans_a=false, trans_b=false} : f32[8,4]
  %8 = matmul(%1, %3) {trans_a=false, trans_b=true} #backward : f32[8,4]
  %9 = matmul(%6, %1) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %10 = add(%5, %9) #backward : f32[4,4]
  %11 = matmul(%0, %8) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %12 = neg(%11) #backward : f32[4,4]
  %13 = add(%4, %12) #backward : f32[4,4]
  result y = %7
  update %5 = %10
  update %4 = %13
})";

TEST(ProductNames, OfEachOfTheThreeProducts) {
  Graph graph = parse_graph(kStep, find_op);
  ProductFinder products(graph);
  std::vector<std::string> found;
  for (const Node& node : graph.nodes())
    if (std::optional<NamedProduct> product = products.find(node))
      found.push_back(product->parameter + ": " + product_label(*product));
  EXPECT_EQ(found,
            (std::vector<std::string>{"h.0.mlp.c_fc.weight: mlp.c_fc", "h.1.mlp.c_fc.weight: mlp.c_fc",
                                      "h.1.mlp.c_fc.weight: mlp.c_fc dgrad", "h.1.mlp.c_fc.weight: mlp.c_fc wgrad",
                                      "h.0.mlp.c_fc.weight: mlp.c_fc wgrad"}));
}

// Made of many weights by one node, each with its scale.
TEST(ProductNames, OfWeightsInEightBits) {
  Graph graph = parse_graph(R"(graph step {
  input x = %0 : f8e4m3[16,32]
  input s = %1 : f32[]
  param a.weight = %2 : f32[32,16]
  param b.weight = %3 : f32[16,32]
  %4, %5, %6, %7, %8 = float8_weights(%2, %3) {stored=[2,3]} : f8e4m3[16,32], f32[], f8e4m3[16,32], f8e4m3[32,16], f32[]
  %9 = matmul(%0, %4, %1, %5) {result="bf16", trans_a=false, trans_b=true} : bf16[16,16]
  %10 = matmul(%0, %6, %1, %8) {result="bf16", trans_a=false, trans_b=true} : bf16[16,16]
  result y = %9
  result z = %10
})",
                            find_op);
  ProductFinder products(graph);
  EXPECT_EQ(product_label(*products.find(graph.nodes()[1])), "a");
  EXPECT_EQ(product_label(*products.find(graph.nodes()[2])), "b");
}

// Of which one kernel makes the copies, some of them side by side.
TEST(ProductNames, OfCopiesSideBySide) {
  Graph graph = parse_graph(R"(graph step {
  input x = %0 : bf16[8,4]
  param h.0.q_proj.weight = %1 : f32[4,4]
  param h.0.k_proj.weight = %2 : f32[4,4]
  param h.0.o_proj.weight = %3 : f32[4,4]
  param h.0.up_proj.weight = %4 : f32[8,4]
  %5, %6, %7 = multi_cast(%4, %1, %2, %3) {joins=[1,2,1], to="bf16"} : bf16[8,4], bf16[8,4], bf16[4,4]
  %8 = matmul(%0, %6) {trans_a=false, trans_b=true} : bf16[8,8]
  %9 = matmul(%0, %7) {trans_a=false, trans_b=true} : bf16[8,4]
  %10 = matmul(%0, %5) {trans_a=false, trans_b=true} : bf16[8,8]
  result a = %8
  result b = %9
  result c = %10
})",
                            find_op);
  ProductFinder products(graph);
  std::vector<std::string> labels;
  for (size_t n : {1, 2, 3}) labels.push_back(product_label(*products.find(graph.nodes()[n])));
  EXPECT_EQ(labels, (std::vector<std::string>{"q+k_proj", "o_proj", "up_proj"}));
}

// As micro-batches read them (passes/hoist_weights.h).
TEST(ProductNames, OfStatesOfWeightsSideBySide) {
  Graph graph = parse_graph(R"(graph micro_batch {
  input x = %0 : bf16[8,4]
  state grad.h.0.q.weight = %1 {of="h.0.q.weight", role="gradient_sum"} : f32[4,4]
  state grad.h.0.k.weight = %2 {of="h.0.k.weight", role="gradient_sum"} : f32[4,4]
  state weights.h.0.q.weight.cast+h.0.k.weight.cast.concat = %3 {role="weights"} : bf16[8,4]
  state weights.h.0.q.weight.cast+h.0.o.weight.cast.concat = %4 {role="weights"} : bf16[8,4]
  %5 = matmul(%0, %3) {trans_a=false, trans_b=true} : bf16[8,8]
  %6 = matmul(%0, %4) {trans_a=false, trans_b=true} : bf16[8,8]
  result y = %5
  result z = %6
})",
                            find_op);
  ProductFinder products(graph);
  EXPECT_EQ(product_label(products.find(graph.nodes()[0]).value()), "q+k");
  EXPECT_FALSE(products.find(graph.nodes()[1])) << "nothing tells of the second";
}

// As in multi_adamw: of a parameter, its gradient and its moments.
TEST(ProductNames, AnUpdateNamesTheGradientsThatItReads) {
  Graph graph = parse_graph(R"(graph step {
  input x = %0 : f32[8,4]
  input s = %1 : f32[]
  param a.weight = %2 : f32[4,4]
  param b.weight = %3 : f32[4,4]
  state m.a = %4 {of="a.weight", role="moment"} : f32[4,4]
  state v.a = %5 {of="a.weight", role="moment"} : f32[4,4]
  state m.b = %6 {of="b.weight", role="moment"} : f32[4,4]
  state v.b = %7 {of="b.weight", role="moment"} : f32[4,4]
  %8 = matmul(%0, %0) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %9 = matmul(%0, %0) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %10, %11, %12, %13, %14, %15 = multi_adamw(%1, %1, %1, %3, %8, %6, %7, %2, %9, %4, %5) {beta1=0.9, beta2=0.95, decay=0.1, decayed=[1,1], eps=1e-08} #update : f32[4,4], f32[4,4], f32[4,4], f32[4,4], f32[4,4], f32[4,4]
  update %3 = %10
  update %6 = %11
  update %7 = %12
  update %2 = %13
  update %4 = %14
  update %5 = %15
})",
                            find_op);
  ProductFinder products(graph);
  EXPECT_EQ(products.find(graph.nodes()[0])->parameter, "b.weight");
  EXPECT_EQ(products.find(graph.nodes()[1])->parameter, "a.weight");
}

// A norm has as many inputs as outputs; of one element more or less, its second output is no copy of its weights.
TEST(ProductNames, WhatANormMakesIsNoParameter) {
  Graph graph = parse_graph(R"(graph step {
  input x = %0 : f32[8,4]
  input dy = %1 : f32[8,4]
  param norm.weight = %2 : f32[4]
  param up.weight = %3 : f32[4,4]
  state grad.up.weight = %4 {of="up.weight", role="gradient_sum"} : f32[4,4]
  %5, %6 = row(%0, %2) : f32[8,1], f32[8,4] { graph body {
    input a0 = %0 : f32[8,4]
    input a1 = %1 : f32[4]
    %2 = reshape(%1) {shape=[1,4]} : f32[1,4]
    %3 = reduce_sum(%0) {dims=[1], keep=true} : f32[8,1]
    %4 = mul(%0, %2) : f32[8,4]
    result r0 = %3
    result r1 = %4
  } }
  %7 = matmul(%6, %3) {trans_a=false, trans_b=true} : f32[8,4]
  %8 = matmul(%1, %6) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %9 = add(%4, %8) #backward : f32[4,4]
  result y = %7
  result r = %5
  update %4 = %9
})",
                            find_op);
  ProductFinder products(graph);
  EXPECT_EQ(product_label(*products.find(graph.nodes()[1])), "up");
  EXPECT_EQ(product_label(*products.find(graph.nodes()[2])), "up wgrad");
}

// As join_projections makes it of q, k and v.
TEST(ProductNames, OfParametersSideBySide) {
  Graph graph = parse_graph(R"(graph step {
  input x = %0 : f32[8,4]
  input dy = %1 : f32[8,6]
  param h.0.attn.q_proj.weight = %2 : f32[4,4]
  param h.0.attn.k_proj.weight = %3 : f32[2,4]
  state grad.q = %4 {of="h.0.attn.q_proj.weight", role="gradient_sum"} : f32[4,4]
  state grad.k = %5 {of="h.0.attn.k_proj.weight", role="gradient_sum"} : f32[2,4]
  %6 = neg(%2) : f32[4,4]
  %7 = concat(%6, %3) {dim=0} : f32[6,4]
  %8 = matmul(%0, %7) {trans_a=false, trans_b=true} : f32[8,6]
  %9 = matmul(%1, %7) {trans_a=false, trans_b=false} #backward : f32[8,4]
  %10 = matmul(%1, %0) {trans_a=true, trans_b=false} #backward : f32[6,4]
  %11 = slice(%10) {begin=0, dim=0, size=4} #backward : f32[4,4]
  %12 = slice(%10) {begin=4, dim=0, size=2} #backward : f32[2,4]
  %13 = add(%4, %11) #backward : f32[4,4]
  %14 = add(%5, %12) #backward : f32[2,4]
  result y = %8
  result dx = %9
  update %4 = %13
  update %5 = %14
})",
                            find_op);
  ProductFinder products(graph);
  std::vector<std::string> labels;
  for (const Node& node : graph.nodes())
    if (std::optional<NamedProduct> product = products.find(node)) labels.push_back(product_label(*product));
  EXPECT_EQ(labels, (std::vector<std::string>{"attn.q+k_proj", "attn.q+k_proj dgrad", "attn.q+k_proj wgrad"}));
}

TEST(ProductNames, WhatJoinedNamesHaveInCommonIsSaidOnce) {
  auto joined = [](std::vector<std::string> names) { return joined_name(names); };
  EXPECT_EQ(joined({"a.0.q_proj.weight", "a.0.k_proj.weight", "a.0.v_proj.weight"}), "a.0.q+k+v_proj.weight");
  EXPECT_EQ(joined({"a.up.weight"}), "a.up.weight");
  EXPECT_EQ(joined({"a.key", "a.keys"}), "a.key+keys");
  EXPECT_EQ(joined({"q", "k"}), "q+k");
  EXPECT_EQ(joined({"a.q.w", "b.q.w"}), "a+b.q.w");
  EXPECT_EQ(joined({"w", "w"}), "w+w");
  EXPECT_EQ(joined({}), "");
}

// Though it may have as many rows as the table.
TEST(ProductNames, WhatIsLookedUpIsNoCopyOfTheTable) {
  Graph graph = parse_graph(R"(graph step {
  input tokens = %0 : i32[8]
  input dy = %1 : f32[8,4]
  param wte.weight = %2 : f32[8,4]
  param up.weight = %3 : f32[4,4]
  state grad.up.weight = %4 {of="up.weight", role="gradient_sum"} : f32[4,4]
  %5 = embedding(%2, %0) : f32[8,4]
  %6 = matmul(%5, %1) {trans_a=true, trans_b=false} #backward : f32[4,4]
  %7 = add(%4, %6) #backward : f32[4,4]
  update %4 = %7
})",
                            find_op);
  EXPECT_EQ(product_label(*ProductFinder(graph).find(graph.nodes()[1])), "up wgrad");
}

TEST(ProductNames, NotOfWhatHasNoParameter) {
  Graph graph = parse_graph(R"(graph g {
  input q = %0 : f32[2,8,4]
  %1 = matmul(%0, %0) {trans_a=false, trans_b=true} : f32[2,8,8]
  %2 = neg(%1) : f32[2,8,8]
  result y = %2
})",
                            find_op);
  ProductFinder products(graph);
  for (const Node& node : graph.nodes()) EXPECT_FALSE(products.find(node));
}

TEST(ProductNames, KernelsOfDifferentProductsHaveLinesOfTheirOwn) {
  std::vector<std::string> labels;
  for (const KernelLine& line : kernel_lines(make_plan(parse_graph(kStep, find_op), {})))
    if (line.label.starts_with("matmul")) labels.push_back(line.label + " x" + std::to_string(line.count));
  std::sort(labels.begin(), labels.end());
  EXPECT_EQ(labels,
            (std::vector<std::string>{"matmul mlp.c_fc dgrad x1", "matmul mlp.c_fc wgrad x2", "matmul mlp.c_fc x2"}));
}

TEST(ProductNames, ProductsOfAnOptimizerSaySo) {
  Graph graph = parse_graph(R"(graph step {
  param w = %0 : f32[4,4]
  %1 = matmul(%0, %0) {trans_a=false, trans_b=true} #update : f32[4,4]
  update %0 = %1
})",
                            find_op);
  EXPECT_EQ(kernel_lines(make_plan(std::move(graph), {}))[0].label, "matmul update");
}

TEST(ProductNames, BlocksAreAlike) {
  EXPECT_EQ(without_block("model.layers.11.self_attn.q_proj.weight"), "self_attn.q_proj.weight");
  EXPECT_EQ(without_block("lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(without_block("a.1b.weight"), "a.1b.weight");
}

}  // namespace
}  // namespace tokamak
