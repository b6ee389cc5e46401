// A whole training step of Llama on meshes of every axis, against the step as it was.
#include "passes/shard.h"

#include "config/mesh_config.h"
#include "graph/op_def.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

struct LlamaMesh {
  const char* name;
  MeshConfig mesh;
};
const LlamaMesh kMeshes[] = {
    {"data2", {.data = 2, .tensor = 1}},
    {"zero3", {.data = 2, .zero = 3}},
    {"tensor2", {.data = 1, .tensor = 2}},
    {"tensor2_without_sequence", {.data = 1, .tensor = 2, .sequence = false}},
    {"context2", {.data = 1, .context = 2}},
    {"data2_context2_tensor2_zero2", {.data = 2, .context = 2, .tensor = 2, .zero = 2}},
};

// Groups, windows, norms of heads and biases of which a part is on each rank.
ModelConfig tiny(bool qwen2) {
  ModelConfig model{.family = "llama", .layers = 1, .heads = 4, .width = 16, .context = 8, .vocab = 24, .kv_heads = 2};
  model.hidden = 12;
  model.window = 5;
  model.head_width = 6;
  (qwen2 ? model.qkv_bias : model.qk_norm) = true;
  return model;
}

class ShardLlama : public testing::TestWithParam<LlamaMesh> {};

TEST_P(ShardLlama, GivesTheStepAsItWas) {
  const MeshConfig& config = GetParam().mesh;
  for (bool qwen2 : {false, true}) {
    Graph step = test::step_of(tiny(qwen2), 4, qwen2);
    PassContext context;
    context.mesh = step_mesh(config);
    context.zero = config.zero;
    context.sequence = config.sequence && config.tensor > 1;
    Graph share = step;
    EXPECT_TRUE(shard(share, context));
    verify(share);
    EXPECT_EQ(test::find_sharding_fault(step, share, context.mesh, test::step_arguments(step), 1e-7), "")
        << (qwen2 ? "qwen2" : "qwen3");
    int64_t tensor = std::max<int64_t>(config.tensor, 1);
    for (const Node& node : share.nodes())  // each rank has some of the heads, and of keys as many groups
      if (node.op->name == "rotary_qkv") EXPECT_EQ(share.shape(node.inputs[1])[2], 2 * 6 / tensor);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShardLlama, testing::ValuesIn(kMeshes),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tokamak
