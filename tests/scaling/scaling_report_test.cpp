#include "scaling/scaling_report.h"

#include "base/json.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

// Without noise: what is said of the next size is then the law's own.
ScalingRequest request_of(const ParametricLaw& law, int sizes = 4) {
  ScalingRequest request{.points = {}, .fit = {.draws = 5}};
  double size = 10e6;
  for (int i = 0; i < sizes; ++i, size *= 2)
    for (double ratio : {5.0, 15.0, 45.0})
      request.points.push_back({"run", {size, ratio * size}, law.loss({size, ratio * size})});
  return request;
}

TEST(ScalingReport, TheNextSizeIsTheLawsBest) {
  ScalingReport report = make_scaling_report(request_of(kBesiroglu));
  double flops = 10 * 6 * 80e6 * 45 * 80e6;
  EXPECT_NEAR(report.next.flops, flops, 1e-9 * flops);
  ModelAndData best = kBesiroglu.best(flops);
  EXPECT_NEAR(report.next.parameters.value, best.parameters, 0.01 * best.parameters);
  EXPECT_NEAR(report.next.tokens.value, best.tokens, 0.01 * best.tokens);
  EXPECT_NEAR(report.next.loss.value, kBesiroglu.loss(best), 1e-3);
  EXPECT_LE(report.next.loss.range.low, report.next.loss.value);
  EXPECT_GE(report.next.loss.range.high, report.next.loss.value);
  EXPECT_TRUE(report.notes.empty());
}

TEST(ScalingReport, TextNamesUnitsAndWhatIsAsked) {
  ScalingRequest request = request_of(kBesiroglu);
  request.model.vocab = 50257;
  std::string text = format_scaling(make_scaling_report(request, {"a note"}));
  for (const char* piece :
       {"nats a token", "6 for each parameter and token", "L(N, D) = E + A / N^alpha + B / D^beta", "95 of 100 draws",
        "the law of your runs", "Chinchilla 3, refit", "--model.layers=", "note       a note"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\n" << text;
}

// Runs of one ratio tell a curve and no law of both; fewer tell nothing.
TEST(ScalingReport, SaysWhyThereIsNoLaw) {
  ScalingRequest request = request_of(kBesiroglu, 2);
  ScalingReport report = make_scaling_report(request);
  EXPECT_FALSE(report.law);
  ASSERT_TRUE(report.curve);
  EXPECT_NE(format_scaling(report).find("no law     a law of parameters and tokens has five constants"),
            std::string::npos);
  nlohmann::json json = nlohmann::json::parse(scaling_json(report));
  EXPECT_TRUE(json["law"].is_null());
  EXPECT_FALSE(json["next"].contains("parameters"));
  EXPECT_GT(json["next"]["curve_loss"]["value"], 1);
  request.points.resize(4);
  expect_user_error([&] { make_scaling_report(request); }, {"[scaling] expected enough runs", "got 4", "5 runs"});
}

TEST(ScalingReport, NotesWhatIsHardlyKnown) {
  ScalingRequest request = request_of(kBesiroglu);
  for (size_t i = 0; i < request.points.size(); ++i) request.points[i].loss *= i % 2 == 0 ? 1.02 : 0.98;
  request.fit.draws = 100;
  request.next = 1000;
  ScalingReport report = make_scaling_report(request);
  ASSERT_EQ(report.notes.size(), 2u);
  EXPECT_NE(report.notes[0].find("hardly known"), std::string::npos);
  EXPECT_NE(report.notes[1].find("1000 times"), std::string::npos);
  ScalingRequest small = request_of(kBesiroglu, 2);
  for (ScalingPoint& point : small.points) point.at.tokens /= 1000;
  ScalingReport few = make_scaling_report(small);
  ASSERT_EQ(few.notes.size(), 2u);
  EXPECT_NE(few.notes[0].find("tokens for each parameter differ"), std::string::npos);
  EXPECT_NE(few.notes[1].find("1e18 FLOPs"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
