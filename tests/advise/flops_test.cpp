#include "advise/flops.h"

#include <gtest/gtest.h>

#include "model/model.h"

namespace tokamak {
namespace {

TEST(Flops, AreEquationThreeOfTheMegatronPaper) {
  ModelConfig m{.layers = 96, .heads = 96, .width = 12288, .context = 2048, .vocab = 51200};
  double B = 1536, s = 2048, l = 96, h = 12288, V = 51200;
  EXPECT_NEAR(step_flops(m, 1536, true) / (96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h))), 1, 1e-12);
  EXPECT_NEAR(step_flops(m, 1536, false) / (72 * B * s * l * h * h * (1 + s / (6 * h) + V / (12 * l * h))), 1, 1e-12);
}

TEST(Flops, WithoutRecomputationAreWhatTheModelCounts) {
  ModelConfig m{.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocab = 50257};
  double counted = flops_per_token(m).full * 1024 * 8;  // norms' and biases' parameters count there, too
  EXPECT_NEAR(step_flops(m, 8, false) / counted, 1, 2e-3);
}

}  // namespace
}  // namespace tokamak
