#include "config/validate.h"

#include <gtest/gtest.h>

#include "config/config.h"
#include "config/preset.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

TEST(Validate, AcceptsTheDefaultsAndThePresets) {
  EXPECT_NO_THROW(validate(RunConfig()));
  for (const std::string& preset : preset_choices()) {
    RunConfig config;
    config.model.preset = preset;
    apply_preset(config.model);
    EXPECT_NO_THROW(validate(config)) << preset;
  }
}

TEST(Validate, ALengthIsSaidInOneWay) {
  RunConfig config;
  config.train.steps = 0;
  expect_user_error([&] { validate(config); }, {"[train.steps] expected the length of the run", "got none; give one"});
  config.train.epochs = 0.5;
  EXPECT_NO_THROW(validate(config));
  config.train.tokens = 5;
  expect_user_error([&] { validate(config); }, {"got several; give one"});
}

TEST(Validate, HeadsMustDivideTheWidth) {
  RunConfig config;
  config.model.heads = 7;
  expect_user_error([&] { validate(config); },
                    {"[model.heads] expected a divisor of model.width = 768, got 7; change one of them"});
}

TEST(Validate, HeadsOfKeysMustDivideThoseOfQueriesAndRanksDivideBoth) {
  RunConfig config;
  config.model.family = "llama";
  config.model.heads = 12, config.model.kv_heads = 5;
  expect_user_error([&] { validate(config); }, {"[model.kv_heads] expected a divisor of model.heads = 12, got 5"});
  config.model.kv_heads = 2;
  config.mesh.tensor = 3;
  expect_user_error([&] { validate(config); },
                    {"[mesh.tensor] expected ranks that divide model.kv_heads = 2, or at most a third more, got 3; "
                     "1, 2 would fit"});
  config.model.kv_heads = 3, config.model.hidden = 77;
  config.mesh.tensor = 2;
  EXPECT_NO_THROW(validate(config));
  EXPECT_TRUE(divides_padded_model(config.model, 2));
  EXPECT_FALSE(divides_model(config.model, 2)) << "one head and one hidden unit more";
  config.model.kv_heads = 4;
  EXPECT_FALSE(divides_model(config.model, 2)) << "one hidden unit more";
  config.model.hidden = 78;
  EXPECT_TRUE(divides_model(config.model, 2));
}

TEST(Validate, APatternOfWindowsIsOfTwoLetters) {
  RunConfig config;
  for (const char* pattern : {"", "SXL", "s"}) {
    config.model.window_pattern = pattern;
    expect_user_error([&] { validate(config); },
                      {fmt::format("[model.window_pattern] expected letters S (model.window) and L (all), as SSSL, "
                                   "got '{}'",
                                   pattern)});
  }
  config.model.window_pattern = "SSSL";
  EXPECT_NO_THROW(validate(config));
}

TEST(Validate, ChunksHaveAllLayers) {
  RunConfig config;
  config.mesh.pipe = 2;
  auto refuses = [&](const char* said, const char* why) {
    config.mesh.chunk_layers = said;
    expect_user_error([&] { validate(config); }, {"[mesh.chunk_layers] expected", why});
  };
  refuses("7,6", "that are 12 together, as model.layers, got 2 that are 13: 7,6");
  refuses("12", "expected 2 numbers");
  refuses("4,4,4", "got 3 that are 12");
  refuses("6,-6", "with commas between them, got '-6'");
  refuses("6;6", "got '6;6'");
  for (const char* said : {"7,5", "0,12", "12,0"}) {
    config.mesh.chunk_layers = said;
    EXPECT_NO_THROW(validate(config)) << said;
  }
  config.mesh.pipe = 4;
  refuses("0,6,0,6", "at least 1 layer in every chunk but the first");
  config.mesh.chunk_layers = "7,5";
  config.mesh.pipe = 1;
  expect_user_error([&] { validate(config); }, {"[mesh.chunk_layers] expected none without mesh.pipe > 1, got 7,5"});
}

TEST(Validate, HeadsOfAWidthOfTheirOwnNeedNotDivideIt) {
  RunConfig config;
  config.model.family = "llama";
  config.model.heads = 7;
  expect_user_error([&] { validate(config); }, {"[model.heads] expected a divisor of model.width = 768, got 7"});
  config.model.head_width = 64;
  EXPECT_NO_THROW(validate(config));
}

TEST(Validate, TotalBatchMustBeWholeMicroBatches) {
  RunConfig config;
  config.train.total_batch = 4 * 1024 * 3;
  EXPECT_NO_THROW(validate(config));
  config.train.total_batch += 1;
  expect_user_error(
      [&] { validate(config); },
      {"expected a multiple of train.batch x model.context = 4 x 1024 = 4096 tokens, got 12289; use 16384"});
}

TEST(Validate, AMeshMustDivideWhatItCuts) {
  auto refuses = [](MeshConfig mesh, const std::string& message) {
    RunConfig config;
    config.mesh = mesh;
    expect_user_error([&] { validate(config); }, {message});
  };
  refuses({.data = 3}, "[mesh.data] expected a divisor of train.batch = 4, got 3; 1, 2, 4 would fit");
  refuses({.context = 3}, "[mesh.context] expected a divisor of half of model.context = 1024, got 3; 1, 2, 4, 8,");
  refuses({.context = 1024}, "256, 512 would fit");
  refuses(
      {.tensor = 9},
      "[mesh.tensor] expected ranks that divide model.heads = 12, or at most a third more, got 9; 1, 2, 3, 4, 5, 6, "
      "7, 8, 12, 13, 14, 15, 16 would fit");
  refuses({.pipe = 15},
          "[mesh.pipe] expected mesh.pipe x mesh.interleave to be at most model.layers + 2 = 14, got 15 x 1; "
          "up to 14 stages would fit");
  refuses({.pipe = 4, .schedule = "interleaved", .interleave = 4}, "got 4 x 4; up to 3 stages would fit");
  refuses({.pipe = 2, .schedule = "interleaved", .interleave = 8}, "got 2 x 8; use fewer chunks a stage");
  refuses({.pipe = 4, .schedule = "interleaved"}, "[mesh.interleave] expected 2 or more");
  refuses({.pipe = 4, .interleave = 2}, "[mesh.interleave] expected 1 without mesh.schedule=interleaved");
  refuses(
      {.pipe = 4, .schedule = "interleaved", .interleave = 2},
      "[train.total_batch] expected a multiple of mesh.pipe = 4 micro-batches with mesh.schedule=interleaved, got 1; "
      "16384 tokens would fit");
  refuses({.pipe = 4, .schedule = "interleaved", .interleave = 2, .slots = 1}, "expected a multiple of mesh.pipe = 4");
  refuses({.pipe = 2, .schedule = "gpip"}, "[mesh.schedule] expected 1f1b, gpipe, interleaved or zero_bubble, got");
  refuses({.zero = 4}, "[mesh.zero] expected a whole number from 0 to 3, got 4");
  RunConfig config;
  config.mesh = {.data = 4, .context = 2, .tensor = 6, .zero = 3};
  EXPECT_NO_THROW(validate(config));
  config.train.total_batch = 8 * 4 * 1024;
  config.mesh = {.pipe = 4, .data = 2, .schedule = "interleaved", .interleave = 3};
  EXPECT_NO_THROW(validate(config));
}

TEST(Validate, SlotsMustFitTheStepAndItsRanks) {
  auto refuses = [](MeshConfig mesh, const std::string& message) {
    RunConfig config;
    config.train.batch = 16;
    config.mesh = mesh;
    expect_user_error([&] { validate(config); }, {"[mesh.slots] expected a power of two", message});
  };
  refuses({.slots = 6}, "got 6; 2, 4, 8, 16, 1 (sums in any order) would fit");
  refuses({.slots = 32}, "divides the 16 sequences of a step, got 32; 2, 4, 8, 16, 1 (");
  refuses({.data = 8, .slots = 4},
          "that 8 data ranks divide, and that divides the 16 sequences of a step, got 4; 8, 16, 1 (");
  refuses({.data = 3, .slots = 4}, "got 4; 1 (sums in any order) would fit");
  refuses(
      {.pipe = 4, .data = 2, .schedule = "interleaved", .interleave = 2, .slots = 4},
      "that 2 data ranks x 4 interleaved stages divide, and that divides the 16 sequences of a step, got 4; 8, 16,");
  RunConfig config;  // a batch of 4 sequences
  config.train.total_batch = 16 * config.model.context;
  config.mesh = {.data = 8, .slots = 16};
  EXPECT_NO_THROW(validate(config)) << "train.batch follows from the slots";
  config.mesh = {.pipe = 4, .data = 2, .schedule = "interleaved", .interleave = 2, .slots = 8};
  EXPECT_NO_THROW(validate(config)) << "and so do micro-batches";
}

TEST(Validate, RangesHoldForStructsBuiltInCode) {
  RunConfig config;
  config.optimizer.beta2 = 1.0;
  expect_user_error([&] { validate(config); }, {"[optimizer.beta2] expected a number from 0 to 0.9999999, got 1"});
}

// What becomes f32 must not be zero, infinite or 1 there.
TEST(Validate, OptimizerNumbersHoldInSinglePrecision) {
  auto refuses = [](double OptimizerConfig::*member, double value, const std::string& message) {
    RunConfig config;
    config.optimizer.*member = value;
    expect_user_error([&] { validate(config); }, {message});
  };
  refuses(&OptimizerConfig::eps, 1e-50, "[optimizer.eps] expected a number from 1e-30 to 1e+30, got 1e-50");
  refuses(&OptimizerConfig::eps, 0, "[optimizer.eps] expected a number from 1e-30");
  refuses(&OptimizerConfig::clip, 1e300, "[optimizer.clip] expected a number from 0 to 1e+30, got 1e+300");
  refuses(&OptimizerConfig::clip, 1e-50, "[optimizer.clip] expected 0 or a number of at least 1e-30, got 1e-50");
  refuses(&OptimizerConfig::lr, 1e300, "[optimizer.lr] expected a number from 0 to 1e+30");
  refuses(&OptimizerConfig::weight_decay, 1e300, "[optimizer.weight_decay] expected a number from 0 to 1e+30");
  refuses(&OptimizerConfig::beta1, 0.99999999, "[optimizer.beta1] expected a number from 0 to 0.9999999");
  RunConfig config;
  config.optimizer.clip = 0;
  EXPECT_NO_THROW(validate(config));
}

TEST(Validate, SizesWhoseBytesCannotBeCountedAreRefused) {
  RunConfig config;
  config.model = {.layers = 10000, .heads = 8192, .width = 1 << 20, .context = 1 << 24, .vocab = 1 << 24};
  config.train.batch = 1 << 20;
  expect_user_error([&] { validate(config); }, {"[model] expected a training step of less than 1.2e+18 bytes",
                                                "lower train.batch, model.context, model.width or model.layers"});
  config = {};
  config.train.total_batch = int64_t(1) << 60;
  expect_user_error([&] { validate(config); },
                    {"[train.total_batch] expected at most 1048576 micro-batches of 4096 tokens"});
}

}  // namespace
}  // namespace tokamak
