// A whole training step of every family, as it is where only its sizes are said, on meshes of several axes, against the
// step as it was. What single families have besides: shard_llama_test.cpp, shard_modern_test.cpp.
#include "config/mesh_config.h"
#include "passes/shard.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(ShardFamilies, GivesTheStepAsItWas) {
  const MeshConfig meshes[] = {
      {.data = 2, .tensor = 1, .zero = 3},
      {.data = 1, .tensor = 2},
      {.data = 2, .context = 2, .tensor = 2, .zero = 2},
  };
  for (const ModelFamily* family : model_families())
    for (const MeshConfig& config : meshes) {
      ModelConfig model{
          .family = std::string(family->name), .layers = 1, .heads = 4, .width = 16, .context = 8, .vocab = 24};
      Graph step = test::step_of(model, 4), share = step;
      PassContext context;
      context.mesh = step_mesh(config);
      context.zero = config.zero;
      context.sequence = config.tensor > 1;
      EXPECT_TRUE(shard(share, context));
      verify(share);
      EXPECT_EQ(test::find_sharding_fault(step, share, context.mesh, test::step_arguments(step), 1e-7), "")
          << family->name << ", mesh.tensor=" << config.tensor << " mesh.zero=" << config.zero;
    }
}

}  // namespace
}  // namespace tokamak
