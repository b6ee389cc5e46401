#include "ops/parameter_kind.h"

#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using Kinds = std::set<std::string>;

TEST(ParameterKind, IsWithoutBlockAndForm) {
  EXPECT_EQ(kind_of("h.0.mlp.c_fc.weight"), "mlp.c_fc");
  EXPECT_EQ(kind_of("h.11.mlp.c_fc.bias"), "mlp.c_fc");
  EXPECT_EQ(kind_of("model.layers.3.self_attn.q_proj.weight"), "self_attn.q_proj");
  EXPECT_EQ(kind_of("wte.weight"), "wte");
  EXPECT_EQ(kind_of("w"), "w");
}

TEST(ParameterKind, IsFoundBehindCopiesAndViews) {
  Graph graph = test::parse(R"(graph g {
    param h.0.q.weight = %0 : f32[16,16]
    param h.0.k.weight = %1 : f32[16,16]
    input x = %2 : bf16[16,16]
    %3 = cast(%0) {to="bf16"} : bf16[16,16]
    %4 = cast(%1) {to="bf16"} : bf16[16,16]
    %5 = concat(%3, %4) {dim=1} : bf16[16,32]
    %6 = transpose(%5) {perm=[1,0]} : bf16[32,16]
    %7 = matmul(%2, %5) {trans_a=false, trans_b=false} : bf16[16,32]
    %8 = matmul(%7, %6) {trans_a=false, trans_b=false} : bf16[16,16]
    result y = %8
  })");
  EXPECT_EQ(kinds_behind(graph, 6), (Kinds{"q", "k"}));
  EXPECT_EQ(kinds_behind(graph, 0), Kinds{"q"});
  EXPECT_EQ(kinds_behind(graph, 7), Kinds{}) << "what a product makes is no weight";
  EXPECT_EQ(kinds_behind(graph, 2), Kinds{});
}

}  // namespace
}  // namespace tokamak
