#include "run/shadow.h"

#include "tests/support/expect_error.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak {
namespace {

using Names = std::vector<std::string>;

TEST(Shadow, CosineIsOfTheAngle) {
  EXPECT_DOUBLE_EQ(cosine_of(4, 9, 1), 1);
  EXPECT_DOUBLE_EQ(cosine_of(4, 9, 19), -0.5);
  EXPECT_DOUBLE_EQ(cosine_of(1e-200, 1e-200, 0), 1) << "their product is below the smallest number";
}

TEST(Shadow, WhatIsNoNumberPointsNowhere) {
  double infinity = HUGE_VAL, nan = std::nan("");
  EXPECT_EQ(cosine_of(nan, 9, nan), 0);
  EXPECT_EQ(cosine_of(infinity, 9, infinity), 0);
  EXPECT_TRUE(std::isnan(cosine_of(1, infinity, infinity))) << "bf16 itself overflows";
  EXPECT_TRUE(std::isnan(cosine_of(1, nan, nan)));
  EXPECT_EQ(cosine_of(0, 0, 0), 1);
  EXPECT_EQ(cosine_of(0, 9, 9), 0) << "all of it was rounded to zero";
}

TEST(Shadow, LeavesOutTheKindThatDrifts) {
  int tried = 0;
  Names found = find_drifting({"a", "b", "c"}, 0.9, [&](const Names& without) {
    ++tried;
    return without == Names{"b"} ? 0.99 : 0.3;
  });
  EXPECT_EQ(found, Names{"b"});
  EXPECT_EQ(tried, 3);
}

TEST(Shadow, LeavesOutSeveralWhereOneIsNotEnough) {
  auto cosine = [](const Names& without) {
    double cosine = 0.2;
    for (const std::string& kind : without) cosine += kind == "a" ? 0.3 : kind == "c" ? 0.45 : 0;
    return cosine;
  };
  EXPECT_EQ(find_drifting({"a", "b", "c"}, 0.9, cosine), (Names{"c", "a"}));
}

TEST(Shadow, LeavesOutAllWhereNothingHelps) {
  EXPECT_EQ(find_drifting({"a", "b"}, 0.9, [](const Names&) { return std::nan(""); }).size(), 2u);
  EXPECT_TRUE(find_drifting({}, 0.9, [](const Names&) { return 0.0; }).empty()) << "nothing has eight bits";
}

TEST(Shadow, IsForFp8AndOneStage) {
  Target target;
  target.fp8_flops = target.bf16_flops = 1e12;
  RunConfig config;
  config.compile.precision = Precision::kFp8;
  EXPECT_FALSE(has_shadow(resolve(config, target)));
  config.train.shadow_every = 10;
  EXPECT_TRUE(has_shadow(resolve(config, target)));
  config.mesh.pipe = 2;
  expect_user_error([&] { has_shadow(resolve(config, target)); }, {"expected no pipeline, got 2 stages"});
  config.compile.precision = Precision::kBf16;
  EXPECT_FALSE(has_shadow(resolve(config, target)));
}

}  // namespace
}  // namespace tokamak
