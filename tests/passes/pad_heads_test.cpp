#include "passes/pad_heads.h"

#include "config/mesh_config.h"
#include "config/model_config.h"
#include "model/model.h"
#include "passes/step_mesh.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

PassContext over(int64_t ranks) {
  PassContext context;
  context.mesh = step_mesh({.data = 1, .tensor = ranks});
  return context;
}

TEST(PadHeads, AddsHeadsOfZerosToEachOfTheirTensors) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[2,8,12]
    param qkv = %1 {role="column", blocks=3, unit=4} : f32[12,36]
    param bias = %2 {role="column_bias", blocks=3, unit=4} : f32[36]
    param proj = %3 {role="row", unit=4} : f32[12,12]
    %4 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,8,36]
    %5 = add(%4, %2) : f32[2,8,36]
    %6, %7 = attention(%5) {causal=true, dropout=0.0, heads=3, scale=0.5, stream=0} : f32[2,8,12], f32[2,3,8]
    %8 = matmul(%6, %3) {trans_a=false, trans_b=false} : f32[2,8,12]
    result y = %8
  })");
  EXPECT_TRUE(pad_heads(graph, over(2)));
  EXPECT_EQ(print(graph), print(test::parse(R"(graph g {
    input x = %0 : f32[2,8,12]
    param qkv = %1 {role="column", blocks=3, unit=4, global=[12,36], padding="1x3"} : f32[12,48]
    param bias = %2 {role="column_bias", blocks=3, unit=4, global=[36], padding="0x3"} : f32[48]
    param proj = %3 {role="row", unit=4, global=[12,12]} : f32[16,12]
    %4 = matmul(%0, %1) {trans_a=false, trans_b=false} : f32[2,8,48]
    %5 = add(%4, %2) : f32[2,8,48]
    %6, %7 = attention(%5) {causal=true, dropout=0.0, heads=4, scale=0.5, stream=0} : f32[2,8,16], f32[2,4,8]
    %8 = matmul(%6, %3) {trans_a=false, trans_b=false} : f32[2,8,12]
    result y = %8
  })")));
  EXPECT_FALSE(pad_heads(graph, over(2))) << "again";
  EXPECT_FALSE(pad_heads(graph, over(1)));
}

// A dim that is split, or joined with others, is the one that grows, also where others are 1.
TEST(PadHeads, ReshapesFollow) {
  auto shapes = [](const std::string& from, const std::string& to, const std::string& unit) {
    Graph graph = test::parse("graph g {\n  param w = %0 {role=\"value_table\", unit=" + unit + "} : f32" + from +
                              "\n  %1 = reshape(%0) {shape=" + to + "} : f32" + to + "\n  result y = %1\n}");
    EXPECT_TRUE(pad_heads(graph, over(2)));
    return to_string(graph.shape(graph.results()[0].value));
  };
  EXPECT_EQ(shapes("[5,12]", "[5,3,4]", "4"), "[5,4,4]");
  EXPECT_EQ(shapes("[5,4]", "[5,1,4]", "4"), "[5,2,4]");
  EXPECT_EQ(shapes("[1,12]", "[1,3,4]", "4"), "[1,4,4]");
  EXPECT_EQ(shapes("[1,12]", "[3,4]", "4"), "[4,4]");
  EXPECT_EQ(shapes("[5,12]", "[5,12,1]", "4"), "[5,16,1]");
  EXPECT_EQ(shapes("[6,12]", "[2,3,12]", "4"), "[2,3,16]");
  EXPECT_EQ(shapes("[2,3,12]", "[6,12]", "4"), "[6,16]");
}

TEST(PadHeads, GroupsOfHeadsStayTogether) {
  ModelConfig model{.family = "llama", .layers = 1, .heads = 6, .width = 24, .context = 8, .vocab = 61};
  model.kv_heads = 3, model.hidden = 20;
  Graph graph = forward_graph("forward", model, 2, 8, false, false);
  EXPECT_TRUE(pad_heads(graph, over(2)));
  auto shape = [&](const std::string& name) {
    return to_string(graph.shape(graph.find_argument("model.layers.0." + name + ".weight")));
  };
  EXPECT_EQ(shape("self_attn.q_proj"), "[32,24]");
  EXPECT_EQ(shape("self_attn.k_proj"), "[16,24]");
  EXPECT_EQ(shape("self_attn.o_proj"), "[24,32]");
  EXPECT_EQ(shape("mlp.up_proj"), "[20,24]") << "ranks divide it";
  EXPECT_NO_THROW(verify(graph));
}

TEST(PadHeads, ManyHiddenUnitsBecomeWhatMatricesLike) {
  EXPECT_EQ(padded_units(3072, 1, 4), 3072);
  EXPECT_EQ(padded_units(3072, 1, 5), 3120) << "5 x 624";
  EXPECT_EQ(padded_units(20, 1, 3), 21) << "where they are few, no more than has to be";
  EXPECT_EQ(padded_units(25, 64, 2), 26);
}

}  // namespace
}  // namespace tokamak
