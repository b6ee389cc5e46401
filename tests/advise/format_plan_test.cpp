#include "advise/format_plan.h"

#include <gtest/gtest.h>

#include "config/cluster.h"
#include "config/preset.h"
#include "model/model.h"

namespace tokamak {
namespace {

TrainingPlan make_small_plan() {
  TrainingPlan plan;
  plan.request.cluster = read_cluster("h200");
  plan.request.gpus = 4;
  plan.request.sequences = 256;
  plan.request.tokens = 10e9;
  plan.request.run.model.preset = "gpt3-6.7b";
  apply_preset(plan.request.run.model);
  std::vector<Estimate> found = search_layouts(plan.request);
  plan.cluster_changes = cluster_changes(plan.request, found);
  plan.layout_changes = layout_changes(plan.request, found[0], found);
  plan.limit = limit_of(plan.cluster_changes, found[0]);
  for (size_t i = 0; i < 3; ++i) plan.layouts.push_back({found[i], {}});
  plan.layouts[0].exact = CompiledLayout{.seconds = 8.5, .exposed = 0.125, .bytes = 128.0 * (1 << 30)};
  return plan;
}

// Made once: a search takes a second.
TrainingPlan small_plan() {
  static const TrainingPlan plan = make_small_plan();
  return plan;
}

TEST(FormatPlan, AnswersWhichHowLongAndWhatLimits) {
  TrainingPlan plan = small_plan();
  std::string text = format_plan(plan);
  for (const PlannedLayout& layout : plan.layouts)
    EXPECT_NE(text.find(describe(layout.estimate.layout)), text.npos) << text;
  for (const char* piece :
       {"8500.0", "128.00", "tokamak train --mesh.", "limited by ", "hours", "kWh", "$", "MFU causal"})
    EXPECT_NE(text.find(piece), text.npos) << piece << "\n" << text;
}

TEST(FormatPlan, TheLineToTrainSaysTheSteps) {
  TrainingPlan plan = small_plan();
  EXPECT_NE(format_plan(plan).find(" --train.steps=19074\n"), std::string::npos)
      << "10e9 / (256 x 2048), the last in full";
  EXPECT_NE(plan_json(plan).find("\"steps\":19074"), std::string::npos);
  plan.asks_data = plan.asks_rate = plan.asks_warmup = true;
  std::string text = format_plan(plan);
  EXPECT_NE(text.find(" --train.steps=19074 --optimizer.lr=0.00012 --optimizer.warmup_steps=715 --data.path=DATA\n"),
            std::string::npos)
      << "6.7e9 parameters; 375e6 / (256 x 2048): " << text;
  EXPECT_NE(text.find("arXiv 2005.14165"), std::string::npos);
  EXPECT_NE(plan_json(plan).find("--data.path=DATA\""), std::string::npos);
  plan.asks_data = plan.asks_rate = plan.asks_warmup = false;
  EXPECT_EQ(format_plan(plan).find("arXiv"), std::string::npos) << "the user's own";
  plan.request.tokens = 1;
  EXPECT_NE(format_plan(plan).find(" --train.steps=1\n"), std::string::npos);
  plan.request.tokens = 1e30;
  EXPECT_EQ(format_plan(plan).find("--train.steps"), std::string::npos) << "no run counts so many";
}

TEST(FormatPlan, TellsWhatFailuresTake) {
  TrainingPlan plan = small_plan();
  EXPECT_EQ(format_plan(plan).find("failures "), std::string::npos) << "none is expected on four GPUs in a day";
  plan.request.tokens = 1e13;
  plan.request.cluster.failures = {{4e4, "test"}, {1000, "test"}, {10, "test"}};
  std::string text = format_plan(plan);
  EXPECT_NE(text.find("failures   one in 2.8 hours on 4 GPUs, 8.6 a day; "), std::string::npos) << text;
  EXPECT_NE(text.find("a checkpoint each 7.3 minutes training keeps 86.5% of the time:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("9.5% goes to restarts, 2.0% to work done again, 2.0% to checkpoints;"), std::string::npos)
      << text;
  EXPECT_NE(plan_json(plan).find("\"share_kept\":0.86"), std::string::npos) << plan_json(plan);
  for (const char* key : {"share_waiting", "seconds_writing"})
    EXPECT_EQ(plan_json(plan).find(key), std::string::npos) << key << ": of what is not said";
}

TEST(FormatPlan, TellsOfStorageAndOfNodesThatStandBy) {
  TrainingPlan plan = small_plan();
  plan.request.tokens = 1e13;
  FailureConfig& failures = plan.request.cluster.failures;
  failures = {{4e4, "test"}, {1000, "test"}, {10, "test"}};
  double parameters = double(count_parameters(plan.request.run.model));
  const Estimate& best = plan.layouts[0].estimate;
  double states = best.memory.optimizer * double(best.layout.mesh.zero > 0 ? best.layout.mesh.data : 1);
  failures.storage = {(4 * parameters + states) / 45, "test"};
  std::string text = format_plan(plan);
  EXPECT_NE(text.find("           storage has a checkpoint after 45.0 seconds\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("stand by"), std::string::npos) << text;
  failures.repair = {1e4, "test"}, failures.spares = 1;
  text = format_plan(plan);
  EXPECT_NE(text.find(", 20.0% to waits for nodes, of which 1 stand by; "), std::string::npos)
      << "1 / (1 + 2 + 2), of a repair as long as nodes run: " << text;
  std::string json = plan_json(plan);
  EXPECT_NE(json.find("\"share_waiting\":0.2"), std::string::npos) << json;
  EXPECT_NE(json.find("\"seconds_writing\":4"), std::string::npos) << json;
}

// Where the layout stands in each line of the first table.
std::vector<size_t> columns_of_layouts(const TrainingPlan& plan) {
  std::string text = format_plan(plan);
  std::vector<size_t> columns;
  for (const PlannedLayout& layout : plan.layouts) {
    size_t at = text.find("  " + describe(layout.estimate.layout));
    columns.push_back(at - text.rfind('\n', at));
  }
  return columns;
}

TEST(FormatPlan, NumbersBeyondAllMeasureKeepTheirColumns) {
  TrainingPlan plan = small_plan();
  std::vector<size_t> usual = columns_of_layouts(plan);
  for (double tokens : {1e15, 1e22, 1e30, 1e100, 1e290}) {
    plan.request.tokens = tokens;
    EXPECT_EQ(columns_of_layouts(plan), usual) << tokens << "\n" << format_plan(plan);
    EXPECT_EQ(format_plan(plan).find("%1"), std::string::npos) << "a blank between columns\n" << format_plan(plan);
  }
  plan.layouts[0].exact->seconds = 1e9;
  plan.layouts[0].exact->bytes = 1e18;
  EXPECT_EQ(columns_of_layouts(plan), usual) << format_plan(plan);
  EXPECT_NE(format_plan(plan).find(" 1.0e+12 "), std::string::npos) << format_plan(plan);
  EXPECT_NE(format_plan(plan).find(" 9.3e+08\n"), std::string::npos) << format_plan(plan);
}

TEST(FormatPlan, TellsWhatIsNotCompiledWhole) {
  TrainingPlan plan = small_plan();
  EXPECT_NE(format_plan(plan).find("not compiled whole: composed of a few compiled blocks"), std::string::npos);
  EXPECT_EQ(format_plan(plan).find("(not compiled):"), std::string::npos) << "the best one is compiled";
  for (PlannedLayout& layout : plan.layouts) layout.exact = CompiledLayout{.seconds = 8.5, .bytes = 128.0 * (1 << 30)};
  EXPECT_EQ(format_plan(plan).find("not compiled"), std::string::npos);
  for (PlannedLayout& layout : plan.layouts) layout.exact.reset();
  EXPECT_NE(format_plan(plan).find("(not compiled): "), std::string::npos);
}

TEST(FormatPlan, TellsWhatDoesNotFitAfterAll) {
  TrainingPlan plan = small_plan();
  EXPECT_EQ(format_plan(plan).find("not shown"), std::string::npos);
  plan.passed_over.push_back({.mesh = {.data = 4, .zero = 1}, .micro_batch = 32, .micro_batches = 2});
  EXPECT_NE(format_plan(plan).find("not shown  data 4, ZeRO 1, micro-batch 32 x 2: when it is compiled"),
            std::string::npos);
  EXPECT_NE(plan_json(plan).find("\"passed_over\":[\"data 4, ZeRO 1, micro-batch 32 x 2\"]"), std::string::npos);
}

TEST(FormatPlan, JsonHasTheSameNumbers) {
  TrainingPlan plan = small_plan();
  std::string json = plan_json(plan);
  EXPECT_EQ(json.find('\n'), json.npos);
  EXPECT_EQ(json.find("\\n"), json.npos) << "no text is broken into lines for a terminal";
  for (const char* piece :
       {"\"gpus\":4", "\"exact\":{\"seconds\":8.5,\"exposed\":0.125", "\"optimizer\":", "\"layout_changes\""})
    EXPECT_NE(json.find(piece), json.npos) << piece << "\n" << json;
}

TEST(FormatPlan, RecommendsWhatLeavesMemoryForLittle) {
  ClusterConfig cluster = read_cluster("h200");
  auto layout = [&](double seconds, double share) {
    PlannedLayout one;
    one.estimate.layout.mesh.data = 4;
    one.exact = CompiledLayout{.seconds = seconds, .bytes = share * usable_bytes(cluster, one.estimate.layout.mesh)};
    return one;
  };
  std::vector<PlannedLayout> layouts = {layout(1, 0.99), layout(1.002, 0.97), layout(1.005, 0.5)};
  EXPECT_EQ(recommend(layouts, cluster), 2u);
  EXPECT_EQ(layouts[0].exact->seconds, 1.005);
  EXPECT_EQ(layouts[1].exact->seconds, 1);
  layouts = {layout(1, 0.99), layout(1.02, 0.5)};
  EXPECT_EQ(recommend(layouts, cluster), 0u);
  layouts = {layout(1, 0.5), layout(1.001, 0.2)};
  EXPECT_EQ(recommend(layouts, cluster), 0u);
}

TEST(FormatPlan, TellsWhatCanHardlyBeMeant) {
  TrainingPlan plan = small_plan();
  EXPECT_EQ(format_plan(plan).find("more than the whole training's"), std::string::npos);
  plan.request.tokens = 1000;
  EXPECT_NE(format_plan(plan).find("one step has 524.29 k tokens, more than the whole training's 1.00 k"),
            std::string::npos)
      << format_plan(plan);
}

}  // namespace
}  // namespace tokamak
