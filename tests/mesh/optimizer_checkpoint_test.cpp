// What an optimizer keeps is decided for each tensor, not for a rank's share: a checkpoint of one mesh is that of any
// other.
#include "autodiff/optimizer_rule.h"
#include "checkpoint/checkpoint.h"
#include "tests/mesh/train_steps.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, std::vector<std::byte>>;

RunConfig run_by(const OptimizerRule& rule, const MeshConfig& mesh) {
  RunConfig config = tiny_mesh_run();
  config.model = {.layers = 1, .heads = 4, .width = 128, .context = 8, .vocab = 61};
  config.train.batch = 12;
  config.optimizer.name = rule.name;
  config.optimizer.state_type = "bf16";
  config.optimizer.ema = 0.5;
  config.mesh = mesh;
  return config;
}

// Calls body(session) on each rank, and returns all tensors as they are then.
template <typename Body>
Tensors tensors_after(const RunConfig& config, const Body& body) {
  Tensors tensors;
  on_mesh(config, [&](Session& session) {
    body(session);
    Tensors mine = tensors_of<std::byte>(session.store());
    if (session.store().leads()) tensors = std::move(mine);
  });
  return tensors;
}

Tensors train_and_save(const RunConfig& config, const fs::path& out) {
  return tensors_after(config, [&](Session& session) {
    session.initialise();
    for (int64_t step = 0; step < 2; ++step)
      session.run_step(std::vector{batch_of(session.resolved(), step, 0)}, step, 1e-2);
    save_checkpoint(out, {.step = 2, .config_json = "{}"}, session.store(), 2);
  });
}

Tensors load(const RunConfig& config, const fs::path& checkpoint) {
  return tensors_after(config, [&](Session& session) {
    session.initialise_states();
    load_parameters(checkpoint, session.store());
    load_optimizer(checkpoint, session.store());
  });
}

TEST(OptimizerCheckpoint, OpensUnderAnyMesh) {
  const MeshConfig meshes[] = {{.data = 1},
                               {.data = 4, .zero = 1},
                               {.data = 2, .zero = 3},
                               {.data = 1, .tensor = 2},
                               {.data = 2, .tensor = 2, .zero = 2},
                               {.data = 3, .zero = 3}};
  for (const OptimizerRule* rule : {&adamw_rule, &adamw8bit_rule, &adafactor_rule, &normuon_rule}) {
    TemporaryFolder out;
    for (const MeshConfig& from : {meshes[0], meshes[4], meshes[5]}) {
      Tensors saved = train_and_save(run_by(*rule, from), out.path());
      if (rule == &adamw8bit_rule) EXPECT_TRUE(saved.contains("adam8.m.h.0.mlp.c_fc.weight"));
      for (const MeshConfig& to : meshes)
        EXPECT_EQ(load(run_by(*rule, to), out / "checkpoints/step_00000002"), saved)
            << rule->name << " to data " << to.data << ", tensor " << to.tensor << ", zero " << to.zero;
    }
  }
}

}  // namespace
}  // namespace tokamak::test
