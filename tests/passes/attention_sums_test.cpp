#include "passes/attention_sums.h"

#include "tests/passes/attention_extras.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;
using test::with_attention_extras;

constexpr const char* kGraph = R"(graph g {
  input qkv = %0 : bf16[2,8,24]
  input out = %1 : bf16[2,8,8]
  input lse = %2 : f32[2,2,8]
  input dout = %3 : bf16[2,8,8]
  %4 = attention_grad(%0, %1, %2, %3) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} #backward : bf16[2,8,24]
  %5 = exp(%4) : bf16[2,8,24]
  %6 = reduce_sum(%4) {dims=[0,1], keep=true} #backward : f32[1,1,24]
  %7 = reshape(%6) {shape=[24]} : f32[24]
  result y = %5
  result bias = %7
})";

TEST(AttentionSums, TakesTheBiasGradient) {
  Graph before = parse(kGraph), after = before;
  EXPECT_TRUE(attention_sums(after, with_attention_extras()));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input qkv = %0 : bf16[2,8,24]
    input out = %1 : bf16[2,8,8]
    input lse = %2 : f32[2,2,8]
    input dout = %3 : bf16[2,8,8]
    %4, %5 = attention_grad(%0, %1, %2, %3) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0, sums=true} #backward : bf16[2,8,24], f32[24]
    %6 = exp(%4) : bf16[2,8,24]
    %7 = reshape(%5) {shape=[1,1,24]} #backward : f32[1,1,24]
    %8 = reshape(%7) {shape=[24]} : f32[24]
    result y = %6
    result bias = %8
  })"));
  test::expect_same_meaning(before, after);
  EXPECT_FALSE(attention_sums(after, with_attention_extras())) << "a second time";
}

// With documents, and with gradients that are added up over micro-batches.
TEST(AttentionSums, WorksWithDocumentsAndAccumulation) {
  Graph before = parse(R"(graph g {
    input qkv = %0 : f32[2,8,24]
    input out = %1 : f32[2,8,8]
    input lse = %2 : f32[2,2,8]
    input dout = %3 : f32[2,8,8]
    input documents = %4 : i32[2,8]
    state grad = %5 : f32[24]
    %6 = attention_grad(%0, %1, %2, %3, %4) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} : f32[2,8,24]
    %7 = reduce_sum(%6) {dims=[0,1], keep=false} : f32[24]
    %8 = add(%5, %7) : f32[24]
    result dqkv = %6
    update %5 = %8
  })");
  Graph after = before;
  EXPECT_TRUE(attention_sums(after, with_attention_extras()));
  EXPECT_EQ(test::count_ops(after, "reduce_sum"), 0);
  EXPECT_EQ(test::count_ops(after, "reshape"), 0);
  test::expect_same_meaning(before, after);
}

TEST(AttentionSums, AsksTheTargetForEachNode) {
  Graph graph = parse(kGraph);
  EXPECT_FALSE(attention_sums(graph, with_attention_extras(false)));
  EXPECT_EQ(print(graph), test::canonical(kGraph));
}

TEST(AttentionSums, LeavesOtherSums) {
  for (const char* sum : {"reduce_sum(%4) {dims=[0], keep=true} #backward : f32[1,8,24]",
                          "reduce_sum(%5) {dims=[0,1], keep=true} #backward : f32[1,1,24]"}) {
    std::string text = kGraph, line = "reduce_sum(%4) {dims=[0,1], keep=true} #backward : f32[1,1,24]";
    text.replace(text.find(line), line.size(), sum);
    std::string last = "%7 = reshape(%6) {shape=[24]} : f32[24]";
    text.replace(text.find(last), last.size(),
                 "%7 = exp(%6) : " + std::string(sum).substr(std::string(sum).rfind("f32")));
    Graph graph = parse(text);
    EXPECT_FALSE(attention_sums(graph, with_attention_extras())) << sum;
  }
}

TEST(AttentionSums, IsOffWithoutFusion) { test::expect_off_without_fusion("attention_sums", with_attention_extras()); }

}  // namespace
}  // namespace tokamak
