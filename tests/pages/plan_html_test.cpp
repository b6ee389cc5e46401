#include "pages/plan_html.h"

#include <gtest/gtest.h>

#include "config/cluster.h"
#include "config/preset.h"
#include "pages/chart_library.h"

namespace tokamak {
namespace {

TEST(PlanHtml, ShowsEveryLayoutTwiceAndNeedsNothingElse) {
  if (chart_library().empty()) GTEST_SKIP() << "no Chart.js in this build";
  TrainingPlan plan;
  plan.request.cluster = read_cluster("h200");
  plan.request.cluster.gpu.name = "H<200>";
  plan.request.gpus = 2;
  plan.request.sequences = 16;
  plan.request.tokens = 10e9;
  plan.request.run.model.preset = "gpt2-124m";
  apply_preset(plan.request.run.model);
  plan.request.wanted = 10;
  plan.found = search_layouts(plan.request);
  plan.layouts.push_back({plan.found[0], {}});
  plan.cluster_changes = {{.what = "twice <memory>", .gain = 0.25}};
  plan.advice = {{.text = "a & b", .gain = 0.031}};
  std::string page = plan_html(plan);
  size_t best = page.find("<b>" + describe(plan.found[0].layout) + "</b>"), command = page.find("tokamak train", best);
  ASSERT_NE(best, page.npos);
  EXPECT_LT(best, command);
  EXPECT_LT(command, page.find("<canvas")) << "what a reader came for stands before the charts";
  for (size_t i = 0; i < 10; ++i) {
    std::string row = "\"" + describe(plan.found[i].layout) + "\"";
    size_t first = page.find(row);
    ASSERT_NE(first, page.npos) << row;
    EXPECT_NE(page.find(row, first + 1), page.npos) << "time and memory";
  }
  EXPECT_NE(page.find("H&lt;200&gt;"), page.npos);
  EXPECT_NE(page.find("<tr><td>twice &lt;memory&gt;</td><td>+25.0% tokens/s</td></tr>"), page.npos);
  EXPECT_NE(page.find("<li>3.1%: a &amp; b</li>"), page.npos);
  EXPECT_NE(page.find("<p>" + describe(plan.found[0].layout) + " (not compiled): "), page.npos);
  EXPECT_EQ(page.find("H<200>"), page.npos);
  for (const char* piece : {" src=", "<link", "@import", "url("})
    EXPECT_EQ(page.substr(0, page.find("<script>")).find(piece), page.npos) << piece;
}

}  // namespace
}  // namespace tokamak
