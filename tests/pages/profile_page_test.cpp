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
  report.kernels[0].tensor_cores = "yes";
  EXPECT_NE(profile_page(report).find(">tensor cores</th>"), std::string::npos);
  EXPECT_EQ(page.find("svg { min-width"), std::string::npos) << "a phone would scroll it";
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos) << "something from the network";
}

TEST(RooflineChart, HasEveryKernelThatComputesOnceAndBelowItsRoof) {
  KernelProfile matmul{
      .label = "matmul", .work = WorkClass::kMatmul, .count = 1, .flops = 1e9, .bytes = 1e6, .seconds = 0.02};
  KernelProfile norm{
      .label = "norm", .work = WorkClass::kNormalisation, .count = 1, .flops = 1e6, .bytes = 1e6, .seconds = 0.01};
  KernelProfile sent{
      .label = "all_reduce", .work = WorkClass::kCommunication, .count = 1, .flops = 1, .bytes = 1, .seconds = 1};
  KernelProfile moved{.label = "transpose", .work = WorkClass::kCopy, .count = 1, .bytes = 1e6, .seconds = 1};
  std::string chart = roofline_chart({matmul, norm, sent, moved}, Target());
  size_t narrow = chart.find("class=\"narrow\"");
  ASSERT_NE(narrow, std::string::npos);
  EXPECT_LT(chart.find("class=\"broad\""), narrow);
  for (const std::string& one : {chart.substr(0, narrow), chart.substr(narrow)}) {
    EXPECT_EQ(count(one, "<circle"), 2);
    EXPECT_LT(one.rfind("<circle"), one.find("class=\"over\"")) << "names of roofs are over kernels";
  }
  EXPECT_NE(chart.find("matmul : 20.000 ms, 50.00 GFLOP/s, 1e+03 FLOP/byte"), std::string::npos) << chart;
  EXPECT_EQ(chart.find("nan"), std::string::npos);
}

TEST(MemoryChart, DrawsEachBlockAndMarksThoseOfThePeak) {
  MemoryPicture picture{.seconds = 2, .arena_bytes = 100, .peak_bytes = 80, .peak_seconds = 1};
  picture.blocks = {{.label = "a", .begin = 0, .end = 2, .offset = 0, .bytes = 50, .at_peak = true},
                    {.label = "b", .begin = 1.5, .end = 2, .offset = 50, .bytes = 30}};
  std::string chart = memory_chart(picture);
  EXPECT_EQ(count(chart, "class=\"block"), 2);
  EXPECT_EQ(count(chart, "class=\"block peak\""), 1);
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
