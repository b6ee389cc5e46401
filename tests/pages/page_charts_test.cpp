#include "pages/page_charts.h"

#include "pages/chart_library.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace tokamak {
namespace {

nlohmann::json numbers_of(const std::string& scripts) {
  std::string begin = "id=\"charts\">";
  size_t from = scripts.find(begin) + begin.size();
  return nlohmann::json::parse(scripts.substr(from, scripts.find("</script>", from) - from));
}

BarChart bars(int rows) {
  BarChart chart{.title = "a<b", .unit = "ms", .sets = {{"x", "--c0", {}}}, .limit = 7};
  for (int i = 0; i < rows; ++i) {
    chart.rows.push_back("</script><row>");
    chart.values.push_back("1 ms");
    chart.sets[0].values.push_back(i == 0 ? NAN : 1.0 / 3);
  }
  return chart;
}

TEST(PageCharts, HasNumbersOfEachChartAndItsPlace) {
  if (chart_library().empty()) GTEST_SKIP() << "no Chart.js in this build";
  PageCharts charts;
  std::string place = charts.add(bars(2));
  EXPECT_NE(place.find("id=\"chart-0\""), place.npos) << place;
  EXPECT_NE(place.find("a&lt;b"), place.npos) << place;
  EXPECT_EQ(place.find("data-choice=\"rows\""), place.npos) << "two rows are shown at once";
  EXPECT_NE(charts.add(bars(11)).find("all 11"), place.npos);
  std::string scripts = charts.scripts();
  EXPECT_EQ(scripts.find("</script><row>"), scripts.npos) << "it would end the numbers";
  nlohmann::json list = numbers_of(scripts);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["rows"][1], "</script><row>");
  EXPECT_TRUE(list[0]["sets"][0]["values"][0].is_null()) << "JSON has no NaN";
  EXPECT_DOUBLE_EQ(list[0]["sets"][0]["values"][1].get<double>(), 0.333333);
  EXPECT_EQ(list[0]["limit"], 7);
}

TEST(PageCharts, OfPointsHasLinesAndWhatEachPointIs) {
  if (chart_library().empty()) GTEST_SKIP() << "no Chart.js in this build";
  PageCharts charts;
  PointChart chart{.title = "t", .x_unit = "FLOP/byte", .y_unit = "FLOP/s"};
  chart.sets = {{"matmul", "--matmul", {{2, 3, 0.5, "wte"}}}};
  chart.lines = {{"bf16", {{1, 10}, {100, 10}}}};
  charts.add(chart);
  nlohmann::json one = numbers_of(charts.scripts())[0];
  EXPECT_EQ(one["kind"], "points");
  EXPECT_EQ(one["sets"][0]["points"][0]["title"], "wte");
  EXPECT_EQ(one["lines"][0]["points"][1]["x"], 100);
}

TEST(PageCharts, WithoutChartsAPageHasNoScripts) { EXPECT_EQ(PageCharts().scripts(), ""); }

}  // namespace
}  // namespace tokamak
