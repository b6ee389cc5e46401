#include "pages/report_page.h"

#include "base/json.h"
#include "pages/chart_library.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <numeric>

namespace tokamak {
namespace {

class ReportPage : public testing::Test {
 protected:
  /// A run of so many steps; each of the fifth ones is evaluated.
  std::filesystem::path make_run(const std::string& name, int64_t steps, const std::string& lr = "0.001") {
    std::string lines;
    for (int64_t step = 1; step <= steps; ++step)
      lines += fmt::format(
          R"({{"step":{},"loss":{},"grad_norm":1,"lr":{},"ms":500,"tokens_per_second":2000,"mfu":0.5,"data_wait_ms":5{}}})"
          "\n",
          step, 4.0 / double(step), lr,
          step % 5 == 0 ? R"(,"val_loss":2.5,"tasks":{"hellaswag":{"accuracy":0.25,"centred":0}})" : "");
    std::filesystem::create_directories(folder_ / name);
    write_file_quickly(folder_ / name / "metrics.jsonl", lines);
    write_file_quickly(folder_ / name / "config.json", R"({"model": {"layers": 2}, "optimizer": {"lr": )" + lr + "}}");
    write_file_quickly(folder_ / name / "events.jsonl",
                       R"({"event":"start","time":1000,"step":0,"ranks":[{"host":"h","device":"<GPU>"}]})"
                       "\n");
    write_file_quickly(folder_ / name / "samples.jsonl", R"({"step":3,"text":"first"})"
                                                         "\n"
                                                         R"({"step":3,"text":"<b>again</b>"})"
                                                         "\n"
                                                         R"({"step":99999,"text":"lost"})"
                                                         "\n");
    return folder_ / name;
  }

  static const std::vector<double>& values(const HistoryPoints& points, const std::string& name) {
    for (const HistorySeries& series : points.series)
      if (series.name == name) return series.values;
    throw std::runtime_error("no series " + name);
  }

  TemporaryFolder folder_;
};

TEST_F(ReportPage, HistoryHasTokensAndHoursOfTraining) {
  RunHistory run = read_history(make_run("a", 20));
  EXPECT_EQ(run.steps, 20);
  ASSERT_EQ(run.training.step.size(), 20u);
  EXPECT_DOUBLE_EQ(run.training.tokens[9], 10 * 1000);
  EXPECT_DOUBLE_EQ(run.training.hours.back(), 20 * 0.5 / 3600);
  EXPECT_DOUBLE_EQ(values(run.training, "loss")[3], 1);
  EXPECT_DOUBLE_EQ(values(run.training, "mfu")[3], 50);
  EXPECT_DOUBLE_EQ(values(run.training, "data_wait")[3], 1);
  EXPECT_EQ(run.evaluations.step, (std::vector<double>{5, 10, 15, 20}));
  EXPECT_EQ(values(run.evaluations, "hellaswag accuracy"), std::vector<double>(4, 0.25));
  EXPECT_EQ(run.samples.size(), 1u) << "the last of a step, and none of steps that were lost";
  EXPECT_EQ(run.events.size(), 1u);
  EXPECT_FALSE(run.is_training);
}

TEST_F(ReportPage, GoodputIsOfSavedStepsUntilTheLastEvent) {
  std::filesystem::path run = make_run("a", 20);
  EXPECT_EQ(read_history(run).goodput, "") << "nothing is saved";
  write_file_quickly(run / "events.jsonl", R"({"event":"start","time":1000,"step":0}
{"event":"save","time":1060,"step":10,"step_seconds":50}
{"event":"start","time":1070,"step":10}
{"event":"save","time":1100,"step":20,"step_seconds":25}
)");
  EXPECT_EQ(read_history(run).goodput, "goodput 75.0%: 75 s of saved steps in 100 s, 2 starts");
  if (chart_library().empty()) return;
  std::vector<RunHistory> runs = {read_history(run)};
  EXPECT_NE(report_page(runs, {}).find("of training, goodput 75.0%: 75 s"), std::string::npos);
}

// A mean of all steps that each point stands for, so that the mean of the points is that of the run.
TEST_F(ReportPage, LongRunsAreThinnedOut) {
  RunHistory run = read_history(make_run("a", 4000), 100);
  size_t points = run.training.step.size();
  EXPECT_GE(points, 100u);
  EXPECT_LE(points, 200u);
  EXPECT_EQ(run.training.step.back(), 4000);
  EXPECT_DOUBLE_EQ(run.training.tokens.back(), 4e6);
  double weighted = 0, before = 0, expected = 0;
  for (size_t i = 0; i < points; ++i) {
    weighted += values(run.training, "loss")[i] * (run.training.step[i] - before);
    before = run.training.step[i];
  }
  for (int step = 1; step <= 4000; ++step) expected += 4.0 / step;
  EXPECT_NEAR(weighted, expected, 1e-9);
  EXPECT_EQ(run.evaluations.step.size(), 800u) << "evaluations are few, and stay";
}

TEST_F(ReportPage, ReadsOverDamageAndRepetition) {
  std::filesystem::path path = make_run("a", 3);
  write_file_quickly(path / "metrics.jsonl", R"({"step":1,"loss":3,"ms":1}
nonsense
{"step":2,"loss":null,"ms":1}
{"step":2,"loss":7,"ms":1}
{"step":3,"loss":1,"ms":1}
{"step":4,"lo)");
  RunHistory run = read_history(path);
  EXPECT_EQ(run.training.step, (std::vector<double>{1, 2, 3}));
  EXPECT_TRUE(std::isnan(values(run.training, "loss")[1]));
}

TEST_F(ReportPage, RefusesWhatIsNoRun) {
  expect_user_error([&] { read_history(folder_ / "nowhere"); }, {"[report] expected the folder of a run", "nowhere"});
}

TEST_F(ReportPage, IsOneFileWithEverythingInside) {
  if (chart_library().empty()) {
    expect_user_error([] { require_charts(); }, {"libjs-chart.js"});
    GTEST_SKIP() << "needs Chart.js (libjs-chart.js) when it is built";
  }
  std::vector<RunHistory> runs = {read_history(make_run("a", 20)), read_history(make_run("b", 10, "0.002"))};
  std::string page = report_page(runs, {.date = "2026-11-26"});
  for (const char* outside : {"http-equiv", "src=", "<link", "@import", "url("})
    EXPECT_EQ(page.substr(0, page.find("<script type")).find(outside), std::string::npos) << outside;
  for (const char* id : {"chart-loss", "chart-rate", "chart-norm", "chart-speed", "chart-mfu", "chart-wait"})
    EXPECT_NE(page.find(fmt::format("id=\"{}\"", id)), std::string::npos) << id;
  EXPECT_EQ(page.find("chart-memory"), std::string::npos) << "no line tells it";
  EXPECT_NE(page.find("<h2>hellaswag accuracy</h2>"), std::string::npos);
  EXPECT_EQ(page.find("<h2>hellaswag centred</h2>"), std::string::npos);
  EXPECT_NE(page.find("&lt;b&gt;again&lt;/b&gt;"), std::string::npos);
  EXPECT_NE(page.find("&lt;GPU&gt; on h"), std::string::npos);
  std::string differs = page.substr(page.find("What differs"));
  differs.resize(differs.find("</table>"));
  EXPECT_NE(differs.find("optimizer.lr"), std::string::npos);
  EXPECT_EQ(differs.find("model.layers"), std::string::npos);
  // Its data is what the charts read.
  size_t begin = page.find("id=\"data\">") + 10, end = page.find("</script>", begin);
  nlohmann::json data = parse_json(page.substr(begin, end - begin));
  EXPECT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["runs"][1]["training"]["step"].size(), 10u);
  EXPECT_EQ(data["runs"][0]["evaluations"]["series"]["validation"][0], 2.5);
  EXPECT_NE(report_page(runs, {.reload = 7}).find("<meta http-equiv=\"refresh\" content=\"7\">"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
