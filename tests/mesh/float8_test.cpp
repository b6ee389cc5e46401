// FP8 on meshes: ranks that are threads, and the ops' references.
#include "tests/mesh/train_steps.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

RunConfig tiny_fp8(const MeshConfig& mesh = {}) {
  RunConfig config = tiny_mesh_run();
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 61};
  config.train.batch = 4;
  config.train.total_batch = 2 * 4 * 16;
  config.compile.precision = Precision::kFp8;
  config.mesh = mesh;
  return config;
}

TEST(Float8OnMeshes, GivesTheSameBitsOnAnyNumberOfDataRanks) {
  for (bool documents : {false, true}) {
    RunConfig config = tiny_fp8({.slots = 4});
    config.data.mask_documents = documents;
    Outcome expected = train_on_mesh(config);
    for (int64_t data : {2, 4})
      for (int64_t zero : {0, 1, 3}) {
        config.mesh.data = data;
        config.mesh.zero = zero;
        EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << data << " ranks, zero " << zero;
      }
  }
}

// Ranks round what they have, with scales of their own: not the same bits, but as close as eight bits are to sixteen.
// The norm tells whether gradients are multiplied by what they were divided by.
void expect_as_close_as_eight_bits_are(RunConfig config) {
  const MeshConfig mesh = config.mesh;
  config.mesh = {};
  Outcome eight = train_on_mesh(config);
  config.mesh = mesh;
  Outcome ranks = train_on_mesh(config);
  config.compile.precision = Precision::kBf16;
  Outcome sixteen = train_on_mesh(config);
  for (size_t step = 0; step < eight.losses.size(); ++step) {
    EXPECT_NEAR(ranks.losses[step], eight.losses[step], 0.01);
    EXPECT_NEAR(ranks.norms[step] / eight.norms[step], 1, 0.02);
    EXPECT_NE(ranks.losses[step], sixteen.losses[step]) << "no product has eight bits";
  }
}

TEST(Float8OnMeshes, TrainsOverTensorRanks) {
  for (bool sequence : {true, false}) {
    RunConfig config = tiny_fp8({.tensor = 2});
    config.mesh.sequence = sequence;
    expect_as_close_as_eight_bits_are(config);
  }
  expect_as_close_as_eight_bits_are(tiny_fp8({.data = 2, .tensor = 2, .zero = 3}));
  RunConfig llama = tiny_fp8({.tensor = 2});
  llama.model.family = "llama";
  llama.model.hidden = 96;
  expect_as_close_as_eight_bits_are(llama);
}

TEST(Float8OnMeshes, TrainsInPipelines) {
  for (const char* schedule : {"1f1b", "zero_bubble"})
    for (bool documents : {false, true}) {
      RunConfig config = tiny_fp8({.pipe = 2});
      config.mesh.schedule = schedule;
      config.data.mask_documents = documents;
      expect_as_close_as_eight_bits_are(config);
    }
  expect_as_close_as_eight_bits_are(tiny_fp8({.pipe = 2, .tensor = 2}));
}

TEST(Float8OnMeshes, RecomputationGivesTheSameBits) {
  for (const char* family : {"gpt2", "llama"})
    for (const MeshConfig& mesh : {MeshConfig{}, MeshConfig{.tensor = 2}, MeshConfig{.pipe = 2}}) {
      RunConfig config = tiny_fp8(mesh);
      config.model.family = family;
      Outcome kept = train_on_mesh(config);
      for (const char* recompute : {"selective", "full"}) {
        config.compile.recompute = recompute;
        EXPECT_EQ(differing(kept, train_on_mesh(config)), "") << family << " " << recompute << " " << mesh.tensor;
      }
    }
}

// What attention gives and its gradient, as eight bits: on data ranks to the bit, computed again to the bit, over
// tensor ranks and in pipelines as close as others.
TEST(Float8OnMeshes, AttentionHasEightBitsOnEveryMesh) {
  for (const char* family : {"gpt2", "llama"}) {
    RunConfig config = tiny_fp8({.slots = 4});
    config.model.family = family;
    config.train.batch =
        16;  // a slot has more tokens than queries, keys and values have columns, and these are one product
    config.train.total_batch = 2 * 16 * 16;
    config.compile.fp8_attention = false;
    Outcome without = train_on_mesh(config);
    config.compile.fp8_attention = true;
    Outcome expected = train_on_mesh(config);
    EXPECT_NE(differing(without, expected), "") << family;
    config.compile.recompute = "selective";
    EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << family;
    config.mesh = {.data = 2, .zero = 3, .slots = 4};
    EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << family;
    config.compile.recompute = "auto";
    for (const MeshConfig& mesh : {MeshConfig{.tensor = 2}, MeshConfig{.pipe = 2}}) {
      config.mesh = mesh;
      expect_as_close_as_eight_bits_are(config);
    }
  }
}

}  // namespace
}  // namespace tokamak::test
