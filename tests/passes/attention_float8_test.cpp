#include "passes/attention_float8.h"

#include "tests/passes/attention_extras.h"
#include "tests/passes/replaced.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;
using test::replaced;
using test::with_attention_extras;

constexpr const char* kGraph = R"(graph g {
  input qkv = %0 : bf16[2,8,24]
  input out = %1 : bf16[2,8,8]
  input lse = %2 : f32[2,2,8]
  input dout = %3 : bf16[2,8,8]
  input factor = %4 : f32[]
  %5, %6 = attention_grad(%0, %1, %2, %3) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0, sums=true} #backward : bf16[2,8,24], f32[24]
  %7 = cast(%5) {to="f32"} #backward : f32[2,8,24]
  %8 = mul(%7, %4) #backward : f32[2,8,24]
  %9 = cast(%8) {to="f8e5m2"} #backward : f8e5m2[2,8,24]
  %10 = reshape(%9) {shape=[16,24]} #backward : f8e5m2[16,24]
  %11 = cast(%10) {to="f32"} : f32[16,24]
  result y = %11
  result bias = %6
})";

TEST(AttentionFloat8, TakesTheCast) {
  Graph before = parse(kGraph), after = before;
  EXPECT_TRUE(attention_float8(after, with_attention_extras()));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input qkv = %0 : bf16[2,8,24]
    input out = %1 : bf16[2,8,8]
    input lse = %2 : f32[2,2,8]
    input dout = %3 : bf16[2,8,8]
    input factor = %4 : f32[]
    %5, %6 = attention_grad(%0, %1, %2, %3, %4) {causal=true, dropout=0.0, float8=true, heads=2, scale=0.5, stream=0, sums=true} #backward : f8e5m2[2,8,24], f32[24]
    %7 = reshape(%5) {shape=[16,24]} #backward : f8e5m2[16,24]
    %8 = cast(%7) {to="f32"} : f32[16,24]
    result y = %8
    result bias = %6
  })"));
  test::expect_same_meaning(before, after);
  EXPECT_FALSE(attention_float8(after, with_attention_extras())) << "a second time";
}

// What attention gives is read in 16 bits, too.
TEST(AttentionFloat8, GivesTheResultBesideItself) {
  Graph before = parse(R"(graph g {
    input qkv = %0 : bf16[2,8,24]
    input documents = %1 : i32[2,8]
    input factor = %2 : f32[]
    %3, %4 = attention(%0, %1) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} : bf16[2,8,8], f32[2,2,8]
    %5 = cast(%3) {to="f32"} : f32[2,8,8]
    %6 = mul(%5, %2) : f32[2,8,8]
    %7 = cast(%6) {to="f8e4m3"} : f8e4m3[2,8,8]
    %8 = cast(%7) {to="f32"} : f32[2,8,8]
    result y = %8
    result out = %3
    result lse = %4
  })");
  Graph after = before;
  EXPECT_TRUE(attention_float8(after, with_attention_extras()));
  EXPECT_EQ(print(after), test::canonical(R"(graph g {
    input qkv = %0 : bf16[2,8,24]
    input documents = %1 : i32[2,8]
    input factor = %2 : f32[]
    %3, %4, %5 = attention(%0, %1, %2) {causal=true, dropout=0.0, float8=true, heads=2, scale=0.5, stream=0} : bf16[2,8,8], f32[2,2,8], f8e4m3[2,8,8]
    %6 = cast(%5) {to="f32"} : f32[2,8,8]
    result y = %6
    result out = %3
    result lse = %4
  })"));
  test::expect_same_meaning(before, after);
}

TEST(AttentionFloat8, AsksTheTargetForEachNode) {
  Graph graph = parse(kGraph);
  EXPECT_FALSE(attention_float8(graph, with_attention_extras(false)));
  EXPECT_EQ(print(graph), test::canonical(kGraph));
}

// Where another node needs it in 16 bits, what is cast is something else, or the factor is not one number for all.
TEST(AttentionFloat8, LeavesOtherGradients) {
  const std::string text = kGraph;
  for (const std::string& other :
       {replaced(text, "result bias", "result dqkv = %5\n  result bias"),
        replaced(text, "result bias", "result scaled = %8\n  result bias"),
        replaced(text, "factor = %4 : f32[]", "factor = %4 : f32[24]"), replaced(text, "mul(%7, %4)", "sub(%7, %4)"),
        replaced(text, "sums=true} #backward : bf16[2,8,24], f32[24]\n  %7 = cast(%5)",
                 "sums=true} #backward : bf16[2,8,24], f32[24]\n  %7 = cast(%0)")}) {
    Graph graph = parse(other);
    EXPECT_FALSE(attention_float8(graph, with_attention_extras())) << other;
  }
}

TEST(AttentionFloat8, LeavesOtherTypes) {
  std::string text =
      replaced(kGraph, "{to=\"f8e5m2\"} #backward : f8e5m2[2,8,24]", "{to=\"bf16\"} #backward : bf16[2,8,24]");
  Graph graph = parse(replaced(text, "f8e5m2[16,24]", "bf16[16,24]"));
  EXPECT_FALSE(attention_float8(graph, with_attention_extras()));
}

// What the backward pass casts again is not kept from the forward pass on.
TEST(AttentionFloat8, LeavesCastsThatAreComputedAgain) {
  Graph graph = parse(R"(graph g {
    input qkv = %0 : bf16[2,8,24]
    input factor = %1 : f32[]
    %2, %3 = attention(%0) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} : bf16[2,8,8], f32[2,2,8]
    %4 = cast(%2) {to="f32"} #backward : f32[2,8,8]
    %5 = mul(%4, %1) #backward : f32[2,8,8]
    %6 = cast(%5) {to="f8e4m3"} #backward : f8e4m3[2,8,8]
    result y = %6
  })");
  EXPECT_FALSE(attention_float8(graph, with_attention_extras()));
}

// A factor that is made behind the node.
TEST(AttentionFloat8, WantsTheFactorBefore) {
  std::string text = replaced(kGraph, "mul(%7, %4)", "mul(%7, %12)");
  Graph graph = parse(replaced(text, "  %8 = ", "  %12 = exp(%4) : f32[]\n  %8 = "));
  EXPECT_FALSE(attention_float8(graph, with_attention_extras()));
}

TEST(AttentionFloat8, IsOnWithFloat8AndFusion) {
  PassContext context = with_attention_extras();
  auto pass = std::ranges::find(pipeline(), "attention_float8", &Pass::name);
  ASSERT_NE(pass, pipeline().end());
  EXPECT_FALSE(pass->enabled(context));
  context.options.precision = Precision::kFp8;
  test::expect_off_without_fusion("attention_float8", context);
}

}  // namespace
}  // namespace tokamak
