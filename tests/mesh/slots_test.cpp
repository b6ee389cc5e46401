// The same bits on any number of data ranks, with every ZeRO stage: ranks that are threads, CPU kernels.
#include "tests/mesh/train_steps.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

RunConfig tiny() {
  RunConfig config = tiny_mesh_run();
  config.optimizer.clip = 0.5;
  config.train.batch = 16;
  config.mesh.slots = 8;
  return config;
}

void expect_same_bits_on_any_mesh(RunConfig config, std::initializer_list<int64_t> stages = {0, 1, 2, 3}) {
  config.mesh.data = 1;
  Outcome expected = train_on_mesh(config);
  for (int64_t data : {2, 4, 8})
    for (int64_t zero : stages) {
      config.mesh.data = data;
      config.mesh.zero = zero;
      EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << data << " ranks, zero " << zero;
    }
}

TEST(Slots, GiveTheSameBitsOnAnyNumberOfRanks) { expect_same_bits_on_any_mesh(tiny()); }

TEST(Slots, GiveTheSameBitsInLowPrecision) {
  RunConfig config = tiny();
  config.compile.precision = Precision::kBf16;
  expect_same_bits_on_any_mesh(config, {0, 3});
  config.compile.precision = Precision::kFp16;
  expect_same_bits_on_any_mesh(config, {1, 2});
}

TEST(Slots, GiveTheSameBitsByMuon) {
  RunConfig config = tiny();
  config.optimizer.name = "muon";
  expect_same_bits_on_any_mesh(config, {0, 1, 3});
  config.optimizer.name = "normuon";
  config.model.layers = 3;  // that 2 ranks do not divide
  expect_same_bits_on_any_mesh(config, {2});
  config.mesh = {.data = 1, .tensor = 2, .slots = 4};
  Outcome expected = train_on_mesh(config);
  config.mesh.data = 2;
  for (int64_t zero : {0, 1}) {
    config.mesh.zero = zero;
    EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << "zero " << zero;
  }
}

// What is rounded by chance is so by what an element is, not by where it lies.
TEST(Slots, GiveTheSameBitsWithStatesInBf16) {
  RunConfig config = tiny();
  config.optimizer.state_type = "bf16";
  config.optimizer.beta2 = 0.999;
  expect_same_bits_on_any_mesh(config, {0, 1, 3});
  config.optimizer.name = "lion";
  expect_same_bits_on_any_mesh(config, {2});
}

// Rows of 256, so that some matrices have several blocks in a row.
TEST(Slots, GiveTheSameBitsWithStatesOf8Bits) {
  RunConfig config = tiny();
  config.model.width = 128;
  config.model.layers = 1;
  config.optimizer.name = "adamw8bit";
  config.optimizer.ema = 0.9;
  expect_same_bits_on_any_mesh(config, {0, 1, 3});
}

TEST(Slots, GiveTheSameBitsByAdafactor) {
  RunConfig config = tiny();
  config.optimizer.name = "adafactor";
  config.optimizer.groups = {"wte*: lr=0.5 decay=0", "*.bias: lr=2"};
  expect_same_bits_on_any_mesh(config, {0, 3});
}

TEST(Slots, GiveTheSameBitsWithDropoutAndMasks) {
  RunConfig config = tiny();
  config.model.dropout = 0.2;
  config.data.mask_documents = true;
  expect_same_bits_on_any_mesh(config, {0, 2});
}

TEST(Slots, GiveTheSameBitsBesideOtherAxes) {
  RunConfig config = tiny();
  config.mesh = {.data = 1, .context = 2, .tensor = 2, .slots = 4};
  Outcome expected = train_on_mesh(config);
  config.mesh.data = 2;
  for (int64_t zero : {0, 1, 2, 3}) {
    config.mesh.zero = zero;
    EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << "zero " << zero;
  }
}

TEST(Slots, GiveTheSameBitsOfLlama) {
  RunConfig config = tiny();
  config.model = tiny_llama(config.model);
  config.data.mask_documents = true;
  expect_same_bits_on_any_mesh(config, {0, 2});
  config.mesh = {.data = 1, .context = 2, .tensor = 2, .slots = 4};
  Outcome expected = train_on_mesh(config);
  config.mesh.data = 2;
  for (int64_t zero : {1, 3}) {
    config.mesh.zero = zero;
    EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << "zero " << zero;
  }
}

// Its queries, keys and values are one product (passes/join_projections.h), of weights that ranks may have to gather.
RunConfig low_llama() {
  RunConfig config = tiny();
  config.model.family = "llama";
  config.model.heads = 2;
  config.model.width = 8;
  config.compile.precision = Precision::kBf16;
  return config;
}

TEST(Slots, GiveTheSameBitsOfLlamaInLowPrecision) {
  RunConfig config = low_llama();
  expect_same_bits_on_any_mesh(config, {0, 2, 3});
  Outcome expected = train_on_mesh(config);
  config.compile.memory_budget_gib = 1e-6;
  EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << "much is computed again";
}

TEST(Slots, JoinedProjectionsDifferFromSingleOnesInRoundingAlone) {
  for (const MeshConfig& mesh : {MeshConfig{.data = 1, .slots = 4}, MeshConfig{.data = 1, .tensor = 2, .slots = 4},
                                 MeshConfig{.data = 1, .context = 2, .slots = 4}}) {
    RunConfig config = low_llama();
    config.mesh = mesh;
    Outcome joined = train_on_mesh(config);
    config.compile.disable_passes = {"join_projections"};
    Outcome single = train_on_mesh(config);
    EXPECT_NE(differing(single, joined), "") << "they were not joined";
    for (size_t i = 0; i < single.losses.size(); ++i) {
      EXPECT_NEAR(joined.losses[i], single.losses[i], 1e-3);
      EXPECT_NEAR(joined.norms[i], single.norms[i], 3e-3);
    }
  }
}

TEST(Slots, GiveTheSameBitsOfModern) {
  RunConfig config = tiny();
  config.model = tiny_modern(config.model);
  config.model.skip_blocks = config.model.x0_mix = true;
  config.optimizer.name = "muon";
  expect_same_bits_on_any_mesh(config, {0, 3});
  config.mesh = {.data = 1, .context = 2, .tensor = 2, .slots = 4};
  Outcome expected = train_on_mesh(config);
  config.mesh.data = 2;
  for (int64_t zero : {0, 1}) {
    config.mesh.zero = zero;
    EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << "zero " << zero;
  }
}

TEST(Slots, GiveTheSameBitsOfModernWhereMuchIsComputedAgain) {
  RunConfig config = tiny();
  config.model = tiny_modern(config.model);
  config.model.skip_blocks = config.model.x0_mix = true;
  Outcome expected = train_on_mesh(config);
  config.compile.memory_budget_gib = 1e-6;
  EXPECT_EQ(differing(expected, train_on_mesh(config)), "");
}

// With several slots a rank keeps gradients for sums that come later, with one it adds them over ranks at once.
TEST(Slots, GiveTheSameBitsWithOneOnEachRankBesideTensor) {
  RunConfig config = tiny();
  config.compile.precision = Precision::kBf16;
  config.mesh = {.data = 1, .tensor = 2, .slots = 2};
  Outcome expected = train_on_mesh(config);
  config.mesh.data = 2;
  for (int64_t zero : {0, 1, 2, 3}) {
    config.mesh.zero = zero;
    EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << "zero " << zero;
  }
}

TEST(Slots, GiveTheSameBitsWhateverIsCutOverContext) {
  RunConfig config = tiny();
  config.mesh = {.context = 2, .slots = 2};
  Outcome expected = train_on_mesh(config);
  config.mesh.zero = 2;  // 3 cuts gradients as 2 does
  EXPECT_EQ(differing(expected, train_on_mesh(config)), "");
}

// In bf16 parameters are gathered once, over context and data.
TEST(Slots, GiveTheSameBitsHoweverParametersAreKeptBesideOtherAxes) {
  RunConfig config = tiny();
  config.compile.precision = Precision::kBf16;
  for (int64_t slots : {2, 4}) {  // one run on a rank, several
    config.mesh = {.data = 2, .context = 2, .tensor = 2, .slots = slots};
    Outcome expected = train_on_mesh(config);
    config.mesh.zero = 1;
    EXPECT_EQ(differing(expected, train_on_mesh(config)), "") << "slots " << slots;
  }
}

// Within rounding of a sum in another order: it is the same step.
TEST(Slots, AreTheStepOfTheWholeBatch) {
  RunConfig config = tiny();
  Outcome slots = train_on_mesh(config);
  config.mesh.slots = 1;
  Outcome whole = train_on_mesh(config);
  for (size_t i = 0; i < whole.losses.size(); ++i) {
    EXPECT_NEAR(slots.losses[i], whole.losses[i], 1e-5);
    EXPECT_NEAR(slots.norms[i], whole.norms[i], 1e-5);
  }
  EXPECT_NEAR(mean(slots.evaluated), mean(whole.evaluated), 1e-5);
  EXPECT_NE(differing(slots, whole), "") << "else the tests above show nothing";
}

}  // namespace
}  // namespace tokamak::test
