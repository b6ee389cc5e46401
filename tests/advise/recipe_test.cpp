#include "advise/recipe.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Recipe, HasTheRatesOfGpt3) {
  auto lr = [](double parameters) { return recipe_of(parameters, 5e5, 1e5).lr; };
  EXPECT_EQ(lr(125e6), 6e-4);
  EXPECT_EQ(lr(1.3e9), 2e-4);
  EXPECT_EQ(lr(175e9), 0.6e-4);
  EXPECT_EQ(lr(1e6), 6e-4) << "a smaller model's is not known";
  EXPECT_EQ(lr(1e12), 0.6e-4);
  EXPECT_DOUBLE_EQ(lr(209.165e6), 4.2e-4) << "half way by the logarithms: sqrt(6 * 3), to two digits";
}

TEST(Recipe, WarmsUpOverTokensOrATwentiethOfTheSteps) {
  EXPECT_EQ(recipe_of(125e6, 5e5, 600'000).warmup_steps, 750);
  EXPECT_EQ(recipe_of(125e6, 5e5, 1000).warmup_steps, 50);
  EXPECT_EQ(recipe_of(125e6, 5e5, 3).warmup_steps, 1);
}

}  // namespace
}  // namespace tokamak
