#include "passes/flash_attention.h"

#include "passes/decompose_attention.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

namespace tokamak {
namespace {

using test::parse;

const char* kText = R"(graph g {
  input qkv = %0 : f32[2,3,12]
  %1, %2 = attention(%0) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} : f32[2,3,4], f32[2,2,3]
  result y = %1
  result lse = %2
})";

TEST(FlashAttention, MarksAttentionSoThatItStaysWhole) {
  Graph graph = parse(kText);
  EXPECT_TRUE(flash_attention(graph, {}));
  EXPECT_EQ(print(graph), test::canonical(R"(graph g {
    input qkv = %0 : f32[2,3,12]
    %1, %2 = attention(%0) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} #keep_whole : f32[2,3,4], f32[2,2,3]
    result y = %1
    result lse = %2
  })"));
  EXPECT_FALSE(decompose_attention(graph, {}));
}

TEST(FlashAttention, DoesNotFireWithoutAttention) {
  Graph graph = parse("graph g { input x = %0 : f32[2]  %1 = softmax(%0) : f32[2]  result y = %1 }");
  EXPECT_FALSE(flash_attention(graph, {}));
  EXPECT_FALSE(decompose_attention(graph, {}));
}

TEST(DecomposeAttention, WritesTheNaiveForm) {
  Graph before = parse(kText), after = before;
  EXPECT_TRUE(decompose_attention(after, {}));
  verify(after);
  EXPECT_EQ(test::count_ops(after, "attention"), 0);
  EXPECT_EQ(test::count_ops(after, "matmul"), 2);
  EXPECT_EQ(test::count_ops(after, "softmax"), 1);
  test::expect_same_meaning(before, after, 1e-12);
}

}  // namespace
}  // namespace tokamak
