#include "pages/scaling_page.h"

#include "base/json.h"
#include "pages/chart_library.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tokamak {
namespace {

ScalingReport report_of(int sizes) {
  ScalingRequest request{.points = {}, .fit = {.draws = 20}};
  double size = 10e6;
  for (int i = 0; i < sizes; ++i, size *= 2)
    for (double ratio : {5.0, 15.0, 45.0})
      request.points.push_back({"</script>run", {size, ratio * size}, kBesiroglu.loss({size, ratio * size})});
  return make_scaling_report(request);
}

nlohmann::json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  size_t at = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(ScalingPage, HasChartsNumbersAndNothingFromTheNetwork) {
  if (chart_library().empty()) GTEST_SKIP() << "built without Chart.js";
  ScalingReport report = report_of(4);
  std::string page = scaling_page(report);
  nlohmann::json charts = data_of(page);
  ASSERT_EQ(charts.size(), 4u);
  EXPECT_EQ(charts[0]["id"], "compute");
  EXPECT_EQ(charts[3]["id"], "size");
  size_t runs = 0;
  for (const auto& set : charts[0]["sets"])
    if (set["kind"] == "points") runs += set["points"].size();
  EXPECT_EQ(runs, 12u);
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
  EXPECT_NE(page.find("the law of your runs"), std::string::npos);
  EXPECT_EQ(page.find("</script>run"), std::string::npos) << "names are data";
}

// The line of least loss goes through the law's own best, as far as six digits tell.
TEST(ScalingPage, LinesAreTheLaws) {
  if (chart_library().empty()) GTEST_SKIP() << "built without Chart.js";
  ScalingReport report = report_of(4);
  nlohmann::json charts = data_of(scaling_page(report));
  for (const auto& set : charts[0]["sets"])
    if (set["label"] == "least loss by the law")
      for (const auto& point : set["points"]) {
        double flops = point["x"], loss = point["y"];
        EXPECT_NEAR(loss, report.law->law.loss(report.law->law.best(flops)), 1e-4);
      }
}

TEST(ScalingPage, ACurveAloneHasItsChart) {
  if (chart_library().empty()) GTEST_SKIP() << "built without Chart.js";
  nlohmann::json charts = data_of(scaling_page(report_of(2)));
  bool found = false;
  for (const auto& set : charts[0]["sets"]) found = found || set["label"] == "the curve";
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tokamak
