#include "scaling/budget_plan.h"

#include "base/json.h"
#include "config/cluster.h"
#include "model/model.h"
#include "scaling/format_budget.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace tokamak {
namespace {

BudgetRequest request_of(const char* budget, const char* cluster = "h200") {
  BudgetRequest request{.budget = parse_budget(budget)};
  request.training.cluster = read_cluster(cluster);
  request.training.gpus = 1;
  request.training.run.compile.precision = Precision::kBf16;
  request.sequences = [](const ModelConfig& model) { return (1 << 17) / model.context; };
  request.presets = {"gpt2-124m", "gpt2-355m", "gpt2-774m", "gpt3-175b", "smollm-135m", "small"};
  return request;
}

// What the planner predicts is what is paid for: tokens are seconds times tokens a second, and the size is where the
// law's best for that compute is the model itself.
TEST(BudgetPlan, SizeAndTokensAreWhatTheBudgetBuys) {
  BudgetPlan plan = plan_budget(request_of("10gpuh"));
  ASSERT_EQ(plan.laws.size(), published_laws().size());
  for (const LawInBudget& law : plan.laws) {
    EXPECT_FALSE(law.is_limited);
    EXPECT_NEAR(law.seconds, 10 * 3600, 1) << law.law->name;
    double best = law.law->best(law.best.flops()).parameters;
    EXPECT_NEAR(law.best.parameters, best, 0.03 * best) << law.law->name;
    EXPECT_GT(law.refit_loss, 2.5);
    EXPECT_LT(law.refit_loss, 3.5);
  }
  const ModelInBudget& shape = plan.shape;
  ASSERT_TRUE(shape.layout);
  EXPECT_NEAR(shape.tokens, shape.tokens_per_second * 36000, 1);
  EXPECT_NEAR(shape.parameters.all / plan.laws.back().best.parameters, 1, 0.15);
  EXPECT_NEAR(shape.flops() / plan.flops, 1, 0.15);
  // No other size does better by the same law.
  EXPECT_GT(plan.laws.front().refit_loss, plan.laws.back().refit_loss);
}

TEST(BudgetPlan, PresetsAreTheNearestOfEachFamily) {
  BudgetPlan plan = plan_budget(request_of("10gpuh"));
  std::vector<std::string> names;
  for (const ModelInBudget& model : plan.presets) names.push_back(model.preset);
  ASSERT_GE(names.size(), 3u);
  EXPECT_EQ(std::ranges::count(names, "gpt3-175b"), 0);
  EXPECT_EQ(std::ranges::count(names, "smollm-135m"), 1);
  for (size_t i = 1; i < plan.presets.size(); ++i) EXPECT_LE(plan.presets[i - 1].loss, plan.presets[i].loss);
}

// A budget of FLOPs is the laws' own question; the cluster only says how long that takes.
TEST(BudgetPlan, FlopsAreAsTheLawsHaveThem) {
  BudgetPlan plan = plan_budget(request_of("1.92e19FLOP"));
  EXPECT_NEAR(plan.laws[1].best.parameters, 400e6, 1) << "Hoffmann et al., table 3";
  EXPECT_NEAR(plan.laws[1].best.tokens, 8.0e9, 0.01e9);
  EXPECT_NEAR(plan.shape.flops(), 1.92e19, 1e12);
  EXPECT_GT(plan.shape.seconds, 3600);
}

// One small GPU for a month: by the laws a model that does not fit on it.
TEST(BudgetPlan, WhatDoesNotFitIsSaid) {
  BudgetRequest request = request_of("20000days", "rtx-4090");
  request.presets = {"gpt2-1558m"};
  BudgetPlan plan = plan_budget(request);
  EXPECT_TRUE(plan.laws.back().is_limited);
  EXPECT_NE(format_budget(plan, "").find("a larger model would be better, but does not fit"), std::string::npos);
}

TEST(BudgetPlan, TextAndJson) {
  BudgetPlan plan = plan_budget(request_of("3h"));
  std::string text = format_budget(plan, " --gpus=1");
  for (const char* piece : {"budget     3 hours, on 1 x", "nats a token", "Kaplan", "arXiv 2203.15556",
                            "tokamak plan --model.preset=", " --gpus=1 --tokens=", "tokamak plan --model.layers="})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\n" << text;
  nlohmann::json json = nlohmann::json::parse(budget_json(plan));
  EXPECT_EQ(json["laws"].size(), 5u);
  EXPECT_NEAR(json["shape"]["seconds"], 3 * 3600, 1);
  EXPECT_FALSE(json["presets"].empty());
}

}  // namespace
}  // namespace tokamak
