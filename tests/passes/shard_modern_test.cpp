// A whole training step of the family modern, with all that it has, on meshes of every axis but pipe, against the step
// as it was.
#include "passes/shard.h"

#include "graph/op_def.h"
#include "passes/step_mesh.h"
#include "tests/passes/family_meshes.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

ModelConfig tiny(bool gated) {
  ModelConfig model{.family = "modern", .layers = 2, .heads = 4, .width = 16, .context = 8, .vocab = 24, .kv_heads = 2};
  model.hidden = 12;
  model.window = 5;
  model.window_pattern = "SL";
  model.window_warmup_steps = 4;
  model.qk_norm = model.embedding_norm = model.skip_blocks = model.x0_mix = true;
  model.value_embeddings = 1;
  model.softcap = 2, model.softcap_shift = 1;
  model.tie_weights = gated;
  if (gated) model.activation = "silu", model.norm_weights = true;
  return model;
}

class ShardModern : public testing::TestWithParam<test::FamilyMesh> {};

TEST_P(ShardModern, GivesTheStepAsItWas) {
  for (bool gated : {false, true}) {
    Graph step = test::step_of(tiny(gated), 4, gated);
    PassContext context = GetParam().context();
    Graph share = step;
    EXPECT_TRUE(shard(share, context));
    verify(share);
    std::vector<HostTensor> arguments = test::step_arguments(step);
    for (size_t i = 0; i < arguments.size(); ++i)
      if (step.arguments()[i].name == "window_share") arguments[i][0] = 0.75;
    EXPECT_EQ(test::find_sharding_fault(step, share, context.mesh, arguments, 1e-7), "") << gated;
  }
}

// Each rank looks up the columns of its own heads.
TEST(ShardOfModern, CutsTablesOfValuesByHeads) {
  Graph share = test::step_of(tiny(false), 4);
  PassContext context;
  context.mesh = step_mesh({.data = 1, .tensor = 2});
  EXPECT_TRUE(shard(share, context));
  ValueId table = share.find_argument("model.layers.1.self_attn.value_embed.weight");
  EXPECT_EQ(share.shape(table), (Shape{24, 4}));
  for (const Node& node : share.nodes())
    if (node.op->name == "embedding" && node.inputs[0] == table)
      EXPECT_EQ(share.shape(node.outputs[0]), (Shape{4, 8, 4}));
}

INSTANTIATE_TEST_SUITE_P(All, ShardModern, testing::ValuesIn(test::kFamilyMeshes), test::mesh_name);

}  // namespace
}  // namespace tokamak
