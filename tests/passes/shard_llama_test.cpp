// A whole training step of Llama on meshes of every axis, against the step as it was.
#include "passes/shard.h"

#include "graph/op_def.h"
#include "tests/passes/family_meshes.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Groups, windows, norms of heads and biases of which a part is on each rank.
ModelConfig tiny(bool qwen2) {
  ModelConfig model{.family = "llama", .layers = 1, .heads = 4, .width = 16, .context = 8, .vocab = 24, .kv_heads = 2};
  model.hidden = 12;
  model.window = 5;
  model.head_width = 6;
  (qwen2 ? model.qkv_bias : model.qk_norm) = true;
  return model;
}

class ShardLlama : public testing::TestWithParam<test::FamilyMesh> {};

TEST_P(ShardLlama, GivesTheStepAsItWas) {
  for (bool qwen2 : {false, true}) {
    Graph step = test::step_of(tiny(qwen2), 4, qwen2);
    PassContext context = GetParam().context();
    Graph share = step;
    EXPECT_TRUE(shard(share, context));
    verify(share);
    EXPECT_EQ(test::find_sharding_fault(step, share, context.mesh, test::step_arguments(step), 1e-7), "")
        << (qwen2 ? "qwen2" : "qwen3");
    int64_t tensor = std::max<int64_t>(GetParam().mesh.tensor, 1);
    for (const Node& node : share.nodes())  // each rank has some of the heads, and of keys as many groups
      if (node.op->name == "rotary_qkv") EXPECT_EQ(share.shape(node.inputs[1])[2], 2 * 6 / tensor);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShardLlama, testing::ValuesIn(test::kFamilyMeshes), test::mesh_name);

}  // namespace
}  // namespace tokamak
