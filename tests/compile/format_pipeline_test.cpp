#include "compile/format_pipeline.h"

#include <gtest/gtest.h>

#include "config/config.h"
#include "graph/target.h"

namespace tokamak {
namespace {

CompiledPipeline pipeline_of(const char* schedule) {
  CompiledPipeline pipeline;
  pipeline.resolved.asked.mesh = {.pipe = 2, .schedule = schedule};
  pipeline.schedule = make_pipe_schedule(schedule, 2, 1, 3);
  pipeline.first_block = {0, 2, 3};
  pipeline.timeline = simulate_pipe(pipeline.schedule, {{}, {}}, 0);
  pipeline.stages.resize(2);
  for (CompiledStep& stage : pipeline.stages) stage.programs.push_back({Graph(), {}, {Graph("update")}});
  return pipeline;
}

void expect_contains(const std::string& text, const std::string& piece) {
  EXPECT_NE(text.find(piece), std::string::npos) << text;
}

TEST(FormatPipeline, ShowsStagesAndWhoDoesWhatWhen) {
  std::string text = format_pipeline(pipeline_of("1f1b"), 24);
  expect_contains(text, "pipeline   2 stages, 1f1b, 3 micro-batches: bubble 25.0%, predicted 12000.0 ms\n");
  expect_contains(text, "  0      0-1  ");
  expect_contains(text, "  1      2  ");
  expect_contains(text, "  stage 0  |0011....aaaa22bbbb..cccc|\n  stage 1  |..00aaaa11bbbb22cccc....|\n");
  expect_contains(format_pipeline(pipeline_of("zero_bubble"), 20), "|..00aa11bbAA22cc");
}

}  // namespace
}  // namespace tokamak
