#include "config/train_ramp.h"

#include <gtest/gtest.h>

#include "config/config.h"
#include "config/validate.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

// Steps of 8 windows of 16 tokens, in micro-batches of 2.
RunConfig config_of(std::vector<std::string> ramp, int64_t slots = 1, int64_t data = 1) {
  RunConfig config;
  config.model = {.layers = 1, .heads = 2, .width = 16, .context = 16, .vocab = 61};
  config.train.batch = 2;
  config.train.total_batch = 128;
  config.train.ramp = std::move(ramp);
  config.mesh.slots = slots;
  config.mesh.data = data;
  return config;
}

TEST(TrainRamp, AllOfARunIsOnePhaseWithoutOne) {
  EXPECT_EQ(ramp_phases(config_of({})), (std::vector<RampPhase>{{kNoRampEnd, 128, 16}}));
}

TEST(TrainRamp, APhaseHasWhatItSaysAndTheRestOfTheWhole) {
  RunConfig config = config_of({"10: total_batch=32 sequence=4", " 1e2 : total_batch=64", "101:sequence=8"});
  std::vector<RampPhase> expected = {{10, 32, 4}, {100, 64, 16}, {101, 128, 8}, {kNoRampEnd, 128, 16}};
  config.train.ramp[1] += " sequence=4";
  expected[1].sequence = 4;
  EXPECT_EQ(ramp_phases(config), expected);
  validate(config);
  EXPECT_EQ(ramp_phase(config, 0), expected[0]);
  EXPECT_EQ(ramp_phase(config, 9), expected[0]);
  EXPECT_EQ(ramp_phase(config, 10), expected[1]);
  EXPECT_EQ(ramp_phase(config, 1000), expected[3]);
}

TEST(TrainRamp, CountsTokensAndSteps) {
  RunConfig config = config_of({"10: total_batch=32", "20: total_batch=64"});
  EXPECT_EQ(ramp_tokens(config, 0), 0);
  EXPECT_EQ(ramp_tokens(config, 9), 9 * 32);
  EXPECT_EQ(ramp_tokens(config, 25), 320 + 640 + 5 * 128);
  for (int64_t steps : {1, 10, 11, 20, 21, 500}) {
    EXPECT_EQ(ramp_steps(config, ramp_tokens(config, steps)), steps);
    EXPECT_EQ(ramp_steps(config, ramp_tokens(config, steps) + 1), steps + 1);
  }
}

TEST(TrainRamp, SlotsAreAShare) {
  RunConfig config = config_of({"10: total_batch=32"}, 4);
  EXPECT_EQ(ramp_slots(config, ramp_phase(config, 0), 4), 1);
  EXPECT_EQ(ramp_slots(config, ramp_phase(config, 10), 4), 4);
  EXPECT_TRUE(slots_fit_ramp(config, 4, 1));
  EXPECT_FALSE(slots_fit_ramp(config, 4, 2)) << "one slot on two ranks";
  EXPECT_FALSE(slots_fit_ramp(config, 2, 1)) << "half a slot";
  expect_user_error([] { validate(config_of({"10: total_batch=32"}, 4, 2)); },
                    {"[train.ramp] expected each phase to have a share of mesh.slots = 4", "2 data ranks"});
}

TEST(TrainRamp, RefusesOtherForms) {
  for (auto [text, why] : {std::pair("10 total_batch=32", "there is no colon behind a step"),
                           {"x: total_batch=32", "'x' is no number of at least 1"},
                           {"0: total_batch=32", "'0' is no number of at least 1"},
                           {"10:", "it says nothing of these steps"},
                           {"10: batch=2", "'batch=2' is neither total_batch= nor sequence="},
                           {"10: total_batch=-32", "'-32' is no number of at least 1"},
                           {"10: total_batch=256", "its steps are not of 1 to 128 tokens"},
                           {"10: sequence=5", "its sequences are no divisor of model.context = 16"},
                           {"10: total_batch=48", "expected a multiple of train.batch x model.context = 2 x 16"}})
    expect_user_error([&, text = text] { validate(config_of({text})); }, {"[train.ramp]", text, why});
  expect_user_error(
      [] {
        validate(config_of({"10: total_batch=64", "10: total_batch=96"}));
      },
      {"the phase before ends at step 10"});
  expect_user_error(
      [] {
        validate(config_of({"10: total_batch=64", "20: total_batch=32"}));
      },
      {"its steps are not of 64 to 128 tokens, as steps do not become smaller"});
  expect_user_error(
      [] {
        validate(config_of({"10: sequence=8", "20: sequence=4"}));
      },
      {"no divisor of model.context = 16 that is at least 8"});
}

// Each rank of axis context has an early and a late piece of a sequence.
TEST(TrainRamp, SequencesAreDividedAsAllOthers) {
  RunConfig config = config_of({"10: sequence=4"});
  config.mesh.context = 4;
  expect_user_error([&] { validate(config); }, {"[train.ramp] '10: sequence=4'", "[mesh.context]", "= 4, got 4"});
  config.train.ramp = {"10: sequence=8"};
  validate(config);
}

}  // namespace
}  // namespace tokamak
