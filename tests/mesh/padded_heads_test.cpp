// Heads, hidden units and vocabularies that tensor ranks do not divide: ranks that are threads, CPU kernels.
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/shared_save.h"
#include "tests/mesh/train_steps.h"
#include "tests/support/temporary_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

namespace fs = std::filesystem;

RunConfig odd_run(const ModelConfig& model) {
  RunConfig config = tiny_mesh_run();
  config.model = model;
  config.mesh.slots = 1;
  config.optimizer.eps = 1e-3;  // without it a step is the sign of a gradient, also of one that is rounding alone
  return config;
}

ModelConfig three_heads() { return {.layers = 2, .heads = 3, .width = 18, .context = 16, .vocab = 61}; }

ModelConfig six_heads_of_three() {
  ModelConfig model = tiny_llama({.layers = 2, .heads = 6, .width = 30, .context = 16, .vocab = 61});
  model.kv_heads = 3, model.hidden = 37;
  return model;
}

void expect_as_one_rank(RunConfig config, const MeshConfig& mesh) {
  Outcome expected = train_on_mesh(config);
  config.mesh = mesh;
  config.mesh.slots = 1;
  expect_close(expected, train_on_mesh(config),
               fmt::format("{} by {}: pipe {}, data {}, context {}, tensor {}, zero {}", config.model.family,
                           config.optimizer.name, mesh.pipe, mesh.data, mesh.context, mesh.tensor, mesh.zero));
}

TEST(PaddedHeads, TrainAsOneRank) {
  const MeshConfig meshes[] = {{.data = 1, .tensor = 2},
                               {.data = 1, .tensor = 4},
                               {.data = 2, .tensor = 2, .zero = 1},
                               {.data = 2, .tensor = 2, .zero = 3},
                               {.data = 1, .context = 2, .tensor = 2},
                               {.pipe = 2, .data = 1, .tensor = 2}};
  for (const MeshConfig& mesh : meshes) expect_as_one_rank(odd_run(three_heads()), mesh);
}

TEST(PaddedHeads, TrainAsOneRankInEveryFamily) {
  ModelConfig biased = six_heads_of_three();
  biased.qk_norm = false, biased.qkv_bias = true, biased.tie_weights = false;
  ModelConfig modern = tiny_modern({.layers = 2, .heads = 3, .width = 18, .context = 16, .vocab = 61});
  modern.kv_heads = 3;
  for (const ModelConfig& model : {six_heads_of_three(), biased, modern})
    for (const MeshConfig& mesh : {MeshConfig{.data = 1, .tensor = 2}, MeshConfig{.data = 2, .tensor = 2, .zero = 3}})
      expect_as_one_rank(odd_run(model), mesh);
}

TEST(PaddedHeads, TrainAsOneRankByOtherRules) {
  for (const char* name : {"sgd", "muon"}) {
    RunConfig config = odd_run(three_heads());
    config.optimizer.name = name;
    config.optimizer.ema = 0.5;
    expect_as_one_rank(config, {.data = 2, .tensor = 2, .zero = 1});
  }
}

TEST(PaddedHeads, HiddenUnitsAloneMayBePadded) {
  ModelConfig model = six_heads_of_three();
  model.heads = 4, model.kv_heads = 2;
  expect_as_one_rank(odd_run(model), {.data = 1, .tensor = 2});
}

TEST(PaddedHeads, SlotsGiveTheSameBitsOnAnyNumberOfDataRanks) {
  RunConfig config = odd_run(three_heads());
  config.mesh = {.data = 1, .tensor = 2, .slots = 4};
  Outcome one = train_on_mesh(config);
  config.mesh.data = 2;
  EXPECT_EQ(differing(one, train_on_mesh(config)), "");
}

TEST(PaddedHeads, OtherOptimizersSayWhatTheyNeed) {
  RunConfig config = odd_run(three_heads());
  config.mesh.tensor = 2;
  for (const char* name : {"adamw8bit", "adafactor", "normuon"}) {
    config.optimizer.name = name;
    EXPECT_THROW(resolve(config, {}), UserError) << name;
  }
}

RunConfig on(const MeshConfig& mesh, RunConfig config) {
  config.mesh = mesh;
  return config;
}

// What ranks write, each its part or one of them all, is what the model has without padding, and opens on any of them.
TEST(PaddedHeads, CheckpointsHaveNoneOfThem) {
  const MeshConfig meshes[] = {{.data = 1}, {.data = 1, .tensor = 2}, {.data = 2, .tensor = 4, .zero = 1}};
  for (const ModelConfig& model : {three_heads(), six_heads_of_three()})
    for (const MeshConfig& from : meshes) {
      RunConfig config = odd_run(model);
      config.model.width *= 10;  // so that tensors are divided over ranks that write them
      TemporaryFolder out;
      std::map<std::string, std::vector<float>> saved;
      on_mesh(on(from, config), [&](Session& session) {
        session.initialise();
        run_a_step(session, 0);
        CheckpointState state{.step = 1, .config_json = "{}"};
        if (!save_in_slices(out.path(), state, session.store(), 2))
          save_checkpoint(out.path(), state, session.store(), 2);
        auto tensors = tensors_of<float>(session.store());
        if (session.store().leads()) saved = std::move(tensors);
      });
      fs::path checkpoint = out / "checkpoints/step_00000001";
      EXPECT_NO_THROW(verify_checkpoint(checkpoint));
      for (const MeshConfig& to : meshes)
        on_mesh(on(to, config), [&](Session& session) {
          session.initialise_states();
          load_parameters(checkpoint, session.store());
          load_optimizer(checkpoint, session.store());
          auto tensors = tensors_of<float>(session.store());
          if (session.store().leads()) EXPECT_TRUE(tensors == saved) << "tensor " << from.tensor << " to " << to.tensor;
        });
    }
}

// All ranks draw the same values as one, each its own.
TEST(PaddedHeads, BeginAsOneRankDoes) {
  RunConfig config = odd_run(three_heads());
  std::map<std::string, std::vector<float>> one;
  on_mesh(on({.data = 1}, config),
          [&](Session& session) { session.initialise(), one = tensors_of<float>(session.store()); });
  for (bool shares : {false, true})
    on_mesh(on({.data = 1, .tensor = 2}, config), [&](Session& session) {
      shares ? session.initialise_shares() : session.initialise();
      auto tensors = tensors_of<float>(session.store());
      if (session.store().leads()) EXPECT_TRUE(tensors == one);
    });
}

}  // namespace
}  // namespace tokamak::test
