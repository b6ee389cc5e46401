// The same bits on one rank and in pipelines: every schedule, every ZeRO stage, ranks that are threads, CPU kernels.
#include "tests/mesh/train_steps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

RunConfig tiny() {
  RunConfig config = tiny_mesh_run();
  config.model.layers = 4;
  config.optimizer.clip = 0.5;
  config.train.batch = 16;
  config.mesh = {.data = 1, .slots = 8};
  return config;
}

MeshConfig mesh(int64_t pipe, int64_t data, int64_t zero, const char* schedule) {
  int64_t interleave = schedule == std::string_view("interleaved") ? 4 / pipe : 1;
  return {.pipe = pipe, .data = data, .zero = zero, .schedule = schedule, .interleave = interleave, .slots = 8};
}

void expect_same_bits(RunConfig config, std::initializer_list<MeshConfig> meshes) {
  Outcome expected = train_on_mesh(config);
  for (const MeshConfig& divided : meshes) {
    config.mesh = divided;
    EXPECT_EQ(differing(expected, train_on_mesh(config)), "")
        << fmt::format("pipe {} {}, data {}, zero {}", divided.pipe, divided.schedule, divided.data, divided.zero);
  }
}

std::initializer_list<MeshConfig> every_schedule() {
  static const std::initializer_list<MeshConfig> meshes = {
      mesh(2, 1, 0, "1f1b"),        mesh(4, 1, 0, "1f1b"),        mesh(2, 1, 0, "gpipe"),       mesh(4, 1, 0, "gpipe"),
      mesh(2, 1, 0, "interleaved"), mesh(2, 1, 0, "zero_bubble"), mesh(4, 1, 0, "zero_bubble"),
  };
  return meshes;
}

TEST(PipeSlots, GiveTheSameBitsInEverySchedule) { expect_same_bits(tiny(), every_schedule()); }

// Where tensor cuts the stream, its ends are at those of a chunk.
TEST(PipeSlots, GiveTheSameBitsOverTensorInAsManyChunks) {
  RunConfig config = tiny();
  MeshConfig stages = mesh(4, 1, 0, "1f1b"), chunks = mesh(2, 1, 0, "interleaved");
  stages.tensor = chunks.tensor = config.mesh.tensor = 2;
  config.mesh = stages;
  expect_same_bits(config, {chunks});
}

TEST(PipeSlots, GiveTheSameBitsWithoutATiedEmbedding) {
  RunConfig config = tiny();
  config.model.tie_weights = false;
  expect_same_bits(config, every_schedule());
}

TEST(PipeSlots, GiveTheSameBitsOfLlama) {
  RunConfig config = tiny();
  config.model = tiny_llama(config.model);
  expect_same_bits(config, {mesh(2, 1, 0, "zero_bubble"), mesh(4, 2, 1, "1f1b"), mesh(2, 2, 3, "interleaved")});
}

TEST(PipeSlots, GiveTheSameBitsOfModern) {
  RunConfig config = tiny();
  config.model = tiny_modern(config.model);
  expect_same_bits(config, {mesh(2, 1, 0, "zero_bubble"), mesh(4, 2, 1, "1f1b"), mesh(2, 2, 3, "interleaved")});
}

// Stages give each other the embeddings, and what blocks of the second half take from the first.
TEST(PipeSlots, GiveTheSameBitsOfModernThatReachesOverBlocks) {
  RunConfig config = tiny();
  config.model = tiny_modern(config.model);
  config.model.skip_blocks = config.model.x0_mix = true;
  for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
    config.compile.precision = precision;
    expect_same_bits(config, {mesh(2, 1, 0, "zero_bubble"), mesh(4, 2, 1, "1f1b"), mesh(2, 2, 3, "interleaved")});
  }
}

// The first stage has the embeddings alone, the last one the classifier.
TEST(PipeSlots, GiveTheSameBitsWithEndsWithoutLayers) {
  MeshConfig six = mesh(6, 1, 0, "1f1b"), two = mesh(2, 2, 3, "zero_bubble");
  six.chunk_layers = "0,1,1,1,1,0";
  two.chunk_layers = "4,0";
  RunConfig config = tiny(), modern = tiny();
  config.model.dropout = 0.2;
  config.data.mask_documents = true;
  modern.model = tiny_modern(modern.model);
  modern.model.skip_blocks = modern.model.x0_mix = true;
  for (Precision precision : {Precision::kFp32, Precision::kBf16})
    for (RunConfig each : {config, modern}) {
      each.compile.precision = precision;
      expect_same_bits(each, {six, two});
    }
}

TEST(PipeSlots, GiveTheSameBitsOnDataRanksWithEveryZeroStage) {
  expect_same_bits(
      tiny(), {mesh(2, 2, 0, "1f1b"), mesh(2, 2, 1, "zero_bubble"), mesh(2, 2, 2, "zero_bubble"), mesh(2, 2, 3, "1f1b"),
               mesh(2, 4, 2, "interleaved"), mesh(2, 4, 3, "gpipe"), mesh(1, 8, 2, "1f1b")});
}

TEST(PipeSlots, GiveTheSameBitsWithDropoutAndMasks) {
  RunConfig config = tiny();
  config.model.dropout = 0.2;
  config.data.mask_documents = true;
  expect_same_bits(config, {mesh(2, 1, 0, "zero_bubble"), mesh(2, 2, 2, "interleaved"), mesh(4, 2, 1, "1f1b")});
}

TEST(PipeSlots, GiveTheSameBitsInLowPrecision) {
  for (Precision precision : {Precision::kBf16, Precision::kFp16}) {
    RunConfig config = tiny();
    config.compile.precision = precision;
    expect_same_bits(config, {mesh(2, 1, 0, "zero_bubble"), mesh(2, 2, 1, "interleaved"), mesh(4, 2, 2, "1f1b")});
  }
}

TEST(PipeSlots, GiveTheSameBitsWhereMuchIsComputedAgain) {
  RunConfig config = tiny();
  config.compile.memory_budget_gib = 1e-6;
  expect_same_bits(config, {mesh(2, 1, 0, "1f1b"), mesh(4, 2, 0, "zero_bubble")});
}

TEST(PipeSlots, GiveTheSameBitsBesideContext) {
  RunConfig config = tiny();
  config.mesh.context = 2;
  MeshConfig divided = mesh(2, 2, 1, "1f1b");
  divided.context = 2;
  expect_same_bits(config, {divided});
}

}  // namespace
}  // namespace tokamak::test
