// Checkpoints of another model than the configured one.
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.h"
#include "config/model_config.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

using test::HostStore;

/// Loads the small model's checkpoint into a store for `model`; the message must have the pieces, the store stay as it
/// was.
void expect_refused(const ModelConfig& model, std::initializer_list<std::string> pieces) {
  TemporaryFolder out;
  HostStore saved, loaded(model);
  saved.fill(1);
  auto path = save_checkpoint(out.path(), {.step = 1, .config_json = "{}"}, saved.store, 2);
  expect_user_error([&] { load_parameters(path, loaded.store); }, pieces);
  expect_user_error([&] { load_parameters(path, loaded.store); },
                    {"model.safetensors", "set model.* as in its state.json", "another train.out"});
  expect_user_error([&] { load_optimizer(path, loaded.store); }, {"optimizer.safetensors", "adam."});
  for (const std::string& name : loaded.store.names())
    for (float x : loaded.read(name)) ASSERT_EQ(x, 0) << name;
}

TEST(CheckpointShape, AnotherVocabulary) {
  ModelConfig model = test::small_model();
  model.vocab = 12;
  expect_refused(model, {"'wte.weight' as f32[12,8], got f32[11,8]"});
}

TEST(CheckpointShape, AnotherWidthNamesTheFirstTensor) {
  ModelConfig model = test::small_model();
  model.width = 16;
  expect_refused(model, {"'wte.weight' as f32[11,16], got f32[11,8]"});
}

TEST(CheckpointShape, AnotherContext) {
  ModelConfig model = test::small_model();
  model.context = 3;
  TemporaryFolder out;
  HostStore saved, loaded(model);
  auto path = save_checkpoint(out.path(), {.step = 1, .config_json = "{}"}, saved.store, 2);
  expect_user_error([&] { load_parameters(path, loaded.store); }, {"'wpe.weight' as f32[3,8], got f32[6,8]"});
}

TEST(CheckpointShape, MoreLayers) {
  ModelConfig model = test::small_model();
  model.layers = 2;
  expect_refused(model, {"'h.1.ln_1.weight' as f32[8], got no such tensor"});
}

TEST(CheckpointShape, WithoutBiases) {
  ModelConfig model = test::small_model();
  model.bias = false;
  expect_refused(model, {"got also 'h.0.attn.c_attn.bias' as f32[24]"});
}

TEST(CheckpointShape, WithAHeadOfItsOwn) {
  ModelConfig model = test::small_model();
  model.tie_weights = false;
  expect_refused(model, {"'lm_head.weight' as f32[11,8], got no such tensor"});
}

}  // namespace
}  // namespace tokamak
