#include "pages/timeline_html.h"

#include "compile/step_compiler.h"
#include "pages/timeline_chart.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

int count(const std::string& text, std::string_view piece) {
  int n = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++n;
  return n;
}

// A tiny step in two micro-batches, planned for a device of two streams.
std::string page(int64_t data, int64_t tensor) {
  RunConfig config;
  config.model.layers = 2;
  config.model.heads = 4;
  config.model.width = 64;
  config.model.context = 32;
  config.model.vocab = 256;
  config.train.batch = 8;
  config.train.total_batch = 2 * 8 * 32;
  config.mesh.data = data;
  config.mesh.tensor = tensor;
  config.mesh.slots = 1;
  Target target;
  target.streams = 2;
  return timeline_html(compile_step(config, target), target);
}

TEST(TimelineHtml, ShowsStreamsAxesAndWhatIsExposed) {
  std::string html = page(2, 2);
  EXPECT_EQ(count(html, "<h2>"), 2) << "micro_batch and update";
  EXPECT_NE(html.find("2 times a step"), std::string::npos);
  EXPECT_NE(html.find("from above: compute, communication"), std::string::npos);
  EXPECT_NE(html.find("mesh of data 2, tensor 2"), std::string::npos);
  for (const char* kind : {"forward", "backward", "update", "data", "tensor", "exposed"})
    EXPECT_GT(count(html, std::string("<rect class=\"") + kind + "\""), 0) << kind;
  EXPECT_NE(html.find("all_reduce over tensor: 1 tensor, "), std::string::npos);
  EXPECT_NE(html.find("<title>matmul mlp.c_fc"), std::string::npos) << "which product, not only that it is one";
  EXPECT_EQ(count(html, "<th>kernel</th>"), 2) << "numbers without pointing";
  EXPECT_NE(html.find(" mlp.c_fc</td>"), std::string::npos);
}

TEST(TimelineHtml, OfOneRankHasNoCommunication) {
  std::string html = page(1, 1);
  EXPECT_EQ(count(html, "communication"), 0);
  EXPECT_EQ(count(html, "<rect class=\"exposed\""), 0);
  EXPECT_EQ(html.find("mesh"), std::string::npos);
}

TEST(TimelineHtml, ShowsWhatTheStagesOfAPipelineDo) {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 32};
  config.train.batch = 2;
  config.train.total_batch = 3 * 2 * 8;
  config.mesh = {.pipe = 2, .schedule = "zero_bubble"};
  std::string html = timeline_html(compile_pipeline(config, Target()), Target());
  EXPECT_EQ(count(html, "<rect class=\"forward\""), 6);
  EXPECT_EQ(count(html, "<rect class=\"backward\""), 6);
  EXPECT_EQ(count(html, "<rect class=\"update\""), 3) << "the first stage has both parts in one";
  EXPECT_NE(html.find("stage 1: I2, "), std::string::npos);
  EXPECT_NE(html.find("2 stages from above, 3 micro-batches; bubble "), std::string::npos);
  EXPECT_EQ(count(html, "<th>stage</th>"), 1);
}

TEST(TimelineHtml, NeedsNothingElse) {
  std::string html = page(2, 1);
  for (const char* piece : {"http", "<script", "src=", "url("}) EXPECT_EQ(html.find(piece), std::string::npos) << piece;
}

TEST(TimelineChart, GoesOnInTheNextRow) {
  std::string chart = timeline_chart({{.height = 10, .bars = {{1, 3, "data", "a<b"}}}}, 4, 2);
  EXPECT_EQ(count(chart, "<svg"), 2);
  EXPECT_EQ(count(chart, "<title>a&lt;b</title>"), 2);
  EXPECT_NE(chart.find("class=\"data\" x=\"500.00\" y=\"0\" width=\"499.50\" height=\"10\""), std::string::npos)
      << chart;
  EXPECT_NE(chart.find("class=\"data\" x=\"0.00\" y=\"0\" width=\"499.50\""), std::string::npos) << chart;
  EXPECT_NE(chart.find("left:100.00%\">4000 ms"), std::string::npos) << "each row has an axis";
  EXPECT_NE(chart.find("left:0.00%\">2000<"), std::string::npos);
}

TEST(TimelineChart, ShortBarsCanBeSeen) {
  EXPECT_NE(timeline_chart({{.bars = {{1, 1.00001, "data", ""}}}}, 4, 1).find("width=\"0.30\""), std::string::npos);
}

}  // namespace
}  // namespace tokamak
