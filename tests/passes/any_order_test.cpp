#include "passes/any_order.h"

#include "graph/text.h"
#include "ops/all_ops.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr const char* kGraph = R"(graph g {
  input qkv = %0 : bf16[2,8,24]
  input out = %1 : bf16[2,8,8]
  input lse = %2 : f32[2,2,8]
  input dout = %3 : bf16[2,8,8]
  %4 = attention_grad(%0, %1, %2, %3) {causal=true, dropout=0.0, heads=2, scale=0.5, stream=0} : bf16[2,8,24]
  %5 = mul(%4, %4) : bf16[2,8,24]
  result y = %5
})";

TEST(AnyOrder, MarksTheGradientOfAttentionAndNothingElse) {
  Graph graph = parse_graph(kGraph, find_op);
  EXPECT_TRUE(any_order(graph, {}));
  EXPECT_TRUE(graph.nodes()[0].attrs.get_bool("any_order"));
  verify(graph);
  EXPECT_FALSE(graph.nodes()[1].attrs.find("any_order"));
  EXPECT_FALSE(any_order(graph, {}));
}

TEST(AnyOrder, IsOffUnlessDeterminismIs) {
  for (const Pass& pass : pipeline())
    if (pass.name == "any_order") {
      PassContext context;
      EXPECT_FALSE(pass.enabled(context));
      context.options.deterministic = false;
      EXPECT_TRUE(pass.enabled(context));
      return;
    }
  FAIL() << "not in the pipeline";
}

}  // namespace
}  // namespace tokamak
