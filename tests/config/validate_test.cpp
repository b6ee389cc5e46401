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

TEST(Validate, HeadsMustDivideTheWidth) {
  RunConfig config;
  config.model.heads = 7;
  expect_user_error([&] { validate(config); },
                    {"[model.heads] expected a divisor of model.width = 768, got 7; change one of them"});
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

TEST(Validate, RangesHoldForStructsBuiltInCode) {
  RunConfig config;
  config.optimizer.beta2 = 1.0;
  expect_user_error([&] { validate(config); },
                    {"[optimizer.beta2] expected a number from 0 up to but not including 1"});
}

}  // namespace
}  // namespace tokamak
