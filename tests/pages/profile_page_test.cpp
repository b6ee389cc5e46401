#include "pages/profile_page.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "config/config.h"
#include "pages/profile_charts.h"
#include "profile/profile_run.h"

namespace tokamak {
namespace {

int count(const std::string& text, const std::string& piece) {
  int found = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++found;
  return found;
}

ProfileReport tiny_report() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 61};
  config.compile.precision = Precision::kFp32;
  auto backend = cpu::make_backend();
  return profile_run(config, cpu::nominal_platform(), *backend, nullptr, {.steps = {.steps = 2, .warmup = 1}});
}

TEST(ProfilePage, ShowsTimeRooflineMemoryAndTimeline) {
  ProfileReport report = tiny_report();
  report.command = "tokamak profile --train.out='a<b'";
  report.ranks.push_back(report.ranks[0]);
  std::string page = profile_page(report);
  for (const BreakdownRow& row : rows_of(report.ranks[0].breakdown))
    EXPECT_NE(page.find("</i>" + row.name + "</td>"), std::string::npos) << row.name;
  for (const char* part : {"<h2>Ranks</h2>", "<h2>Roofline</h2>", "<h2>Memory</h2>", "<h2>Timeline</h2>",
                           "<h2>Predicted and measured</h2>", "prefers-color-scheme: dark", "a&lt;b"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(page.find("tensor cores"), std::string::npos) << "a CPU has none";
  EXPECT_NE(page.find("<li>matmul mlp.c_fc"), std::string::npos) << "blocks of memory say which product";
  report.kernels[0].tensor_cores = "yes";
  EXPECT_NE(profile_page(report).find(">tensor cores</th>"), std::string::npos);
  EXPECT_EQ(page.find("svg { min-width"), std::string::npos) << "a phone would scroll it";
  for (const char* piece : {" src=", "<link", "@import", "url("})
    EXPECT_EQ(page.substr(0, page.find("<script>")).find(piece), std::string::npos) << piece;
}

TEST(RooflineChart, HasEveryKernelThatComputesOnceAndBelowItsRoof) {
  KernelProfile matmul{
      .label = "matmul", .work = WorkClass::kMatmul, .count = 1, .flops = 1e9, .bytes = 1e6, .seconds = 0.02};
  KernelProfile norm{
      .label = "norm", .work = WorkClass::kNormalisation, .count = 1, .flops = 1e6, .bytes = 1e6, .seconds = 0.01};
  KernelProfile sent{
      .label = "all_reduce", .work = WorkClass::kCommunication, .count = 1, .flops = 1, .bytes = 1, .seconds = 1};
  KernelProfile moved{.label = "transpose", .work = WorkClass::kCopy, .count = 1, .bytes = 1e6, .seconds = 1};
  matmul.bytes = 1e4;
  Target target;
  PointChart chart = roofline_chart({matmul, norm, sent, moved}, target);
  ASSERT_EQ(chart.sets.size(), 2u) << "what is sent and what is moved computes nothing";
  ASSERT_EQ(chart.sets[0].points.size(), 1u);
  EXPECT_EQ(chart.sets[0].colour, "--matmul");
  EXPECT_DOUBLE_EQ(chart.sets[0].points[0].x, 1e5);
  EXPECT_DOUBLE_EQ(chart.sets[0].points[0].y, 5e10);
  EXPECT_DOUBLE_EQ(chart.sets[0].points[0].share, 2.0 / 3);
  EXPECT_EQ(chart.sets[0].points[0].title.find("matmul : 20.000 ms, 50.00 GFLOP/s, 1e+05 FLOP/byte"), 0u);
  ASSERT_EQ(chart.lines.size(), 3u);
  for (const NamedLine& line : chart.lines) {
    EXPECT_DOUBLE_EQ(line.points.back().first, 1e5) << "as far as the points";
    EXPECT_DOUBLE_EQ(line.points[0].second, line.points[0].first * target.memory_bandwidth);
    EXPECT_LE(line.points[1].second, line.points[2].second);
  }
}

TEST(MemoryChart, DrawsEachBlockAndMarksThoseOfThePeak) {
  MemoryPicture picture{.seconds = 2, .arena_bytes = 100, .peak_bytes = 80, .peak_seconds = 1};
  picture.blocks = {{.label = "a", .begin = 0, .end = 2, .offset = 0, .bytes = 50, .at_peak = true},
                    {.label = "b", .begin = 1.5, .end = 2, .offset = 50, .bytes = 30}};
  std::string chart = memory_chart(picture);
  EXPECT_EQ(count(chart, "class=\"block"), 2);
  EXPECT_EQ(count(chart, "class=\"block peak\""), 1);
  EXPECT_EQ(count(chart, "class=\"grid\""), count(chart, "style=\"bottom")) << "a line for each number";
  EXPECT_NE(chart.find("left:100.00%\">2000 ms<"), std::string::npos) << chart;
  EXPECT_NE(chart.find("x=\"750.00\" y=\"64.00\" width=\"250.00\" height=\"96.00\""), std::string::npos) << chart;
  EXPECT_EQ(memory_chart({}), "");
}

TEST(BreakdownBar, HasAPartForEachShareThatCanBeSeen) {
  TimeBreakdown breakdown = break_down(
      std::vector<ActivitySpan>{{Activity::kCompute, WorkClass::kMatmul, 0, 3}, {Activity::kDataWait, {}, 3, 3.5}}, 4);
  std::string bar = breakdown_bar(breakdown);
  EXPECT_EQ(count(bar, "<i "), 3);
  EXPECT_NE(bar.find("class=\"matmul\" style=\"width:75.00%\""), std::string::npos) << bar;
  EXPECT_NE(bar.find("class=\"data-wait\" style=\"width:12.50%\""), std::string::npos) << bar;
}

}  // namespace
}  // namespace tokamak
