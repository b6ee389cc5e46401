#include "advise/search.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <tuple>

#include "config/cluster.h"
#include "config/preset.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

TrainingRequest request_of(const char* model, const char* cluster, int64_t gpus) {
  TrainingRequest request;
  request.cluster = read_cluster(cluster);
  request.gpus = gpus;
  request.sequences = 256;
  request.tokens = 10e9;
  request.model.preset = model;
  apply_preset(request.model);
  return request;
}

TEST(Search, TheFastestComesFirstAndAllFit) {
  TrainingRequest request = request_of("gpt3-6.7b", "h200", 4);
  std::vector<Estimate> found = search_layouts(request);
  ASSERT_GE(found.size(), 10u);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(fits(found[i], request.cluster)) << describe(found[i].layout);
    EXPECT_GE(found[i].time.total(), found[i > 0 ? i - 1 : 0].time.total());
  }
  // 6.7B parameters take 107 GiB with their optimizer, so that one GPU alone computes much again.
  EXPECT_GT(found[0].layout.mesh.zero, 0);
}

// Most layouts are passed over by what they take at least; all of them by themselves are the slow, obvious twin.
TEST(Search, NoLayoutThatIsPassedOverIsFaster) {
  for (auto [model, cluster, gpus] : {std::tuple("gpt2-1558m", "dgx-a100", 16), std::tuple("gpt3-13b", "dgx-h100", 64),
                                      std::tuple("gpt2-124m", "h200", 8)}) {
    TrainingRequest request = request_of(model, cluster, gpus);
    double least = std::numeric_limits<double>::infinity();
    std::map<std::string, double> of_meshes;
    for (const ParallelLayout& layout :
         all_layouts(request.model, gpus, request.cluster.gpus_per_node, request.sequences)) {
      Estimate one = estimate(request.model, layout, request.cluster);
      double blocks = double((request.model.layers + layout.mesh.pipe - 1) / layout.mesh.pipe * layout.micro_batches);
      EXPECT_LE(blocks * least_block_seconds(request.model, layout, request.cluster), one.time.total())
          << describe(layout);
      if (!fits(one, request.cluster)) continue;
      std::string mesh = describe(layout);
      double& best = of_meshes.try_emplace(mesh.substr(0, mesh.find(", micro-batch")), 1e300).first->second;
      best = std::min(best, one.time.total());
      least = std::min(least, one.time.total());
    }
    std::vector<Estimate> found = search_layouts(request);
    EXPECT_EQ(found.size(), of_meshes.size());
    EXPECT_EQ(found[0].time.total(), least);
    for (const Estimate& one : found) {
      std::string mesh = describe(one.layout);
      EXPECT_EQ(one.time.total(), of_meshes[mesh.substr(0, mesh.find(", micro-batch"))]) << mesh;
    }
  }
}

TEST(Search, OfSeveralGpusSomeMemoryIsForCommunication) {
  ClusterConfig cluster = read_cluster("h200");
  Estimate one, two;
  one.layout.mesh.data = 1, two.layout.mesh.data = 2;
  one.memory.weights = two.memory.weights = cluster.gpu.memory_bytes.value - 0.5e9;
  EXPECT_TRUE(fits(one, cluster));
  EXPECT_FALSE(fits(two, cluster));
}

TEST(Search, FasterLinksNeverMakeItSlower) {
  for (const char* model : {"gpt2-1558m", "gpt3-6.7b"}) {
    TrainingRequest request = request_of(model, "dgx-a100", 16);
    double before = search_layouts(request)[0].time.total();
    request.cluster.between.bandwidth.value *= 2;
    EXPECT_LE(search_layouts(request)[0].time.total(), before) << model;
    request.cluster.within.bandwidth.value *= 2;
    EXPECT_LE(search_layouts(request)[0].time.total(), before) << model;
    request.cluster.gpu.memory_bytes.value *= 2;
    EXPECT_LE(search_layouts(request)[0].time.total(), before) << model;
  }
}

TEST(Search, SlowLinksAreNamedAsTheLimit) {
  TrainingRequest request = request_of("gpt3-6.7b", "h200", 4);
  Estimate best = search_layouts(request)[0];
  EXPECT_EQ(limit_of(cluster_changes(request, best), best).find("limited by matrix products"), 0u);
  request.cluster.within.bandwidth.value = 1e9;
  request.allows = [](const ParallelLayout& layout) { return layout.mesh.data == 4; };  // a pipeline sends little
  best = search_layouts(request)[0];
  EXPECT_EQ(limit_of(cluster_changes(request, best), best).find("limited by links"), 0u);
}

TEST(Search, WhatIsAskedForIsAllThatIsTried) {
  TrainingRequest request = request_of("gpt2-1558m", "h200", 4);
  request.allows = [](const ParallelLayout& layout) { return layout.mesh.tensor == 1 && layout.mesh.pipe == 4; };
  for (const Estimate& one : search_layouts(request)) EXPECT_EQ(one.layout.mesh.pipe, 4);
  request.allows = [](const ParallelLayout&) { return false; };
  expect_user_error([&] { smallest_layout(request); }, {"[plan] expected a layout of 4 GPUs"});
}

TEST(Search, NothingFitsWhatIsTooSmall) {
  TrainingRequest request = request_of("gpt3-6.7b", "rtx-4090", 1);
  EXPECT_TRUE(search_layouts(request).empty());
  EXPECT_GT(smallest_layout(request).memory.total(), request.cluster.gpu.memory_bytes.value);
}

TEST(Search, ACostIsOfTheWholeTraining) {
  TrainingRequest request = request_of("gpt2-124m", "h200", 4);
  request.cluster.price = {2, "made up"};
  request.cluster.node_power = {8000, "made up"};
  double step = double(request.sequences * request.model.context) / 1e6;  // a million tokens/s
  TrainingCost cost = cost_of(request, step);
  EXPECT_DOUBLE_EQ(cost.tokens_per_second, 1e6);
  EXPECT_DOUBLE_EQ(cost.seconds, 1e4);
  EXPECT_NEAR(cost.kilowatt_hours, 4 * 1e4 / 3600, 1e-9);  // half a node
  EXPECT_NEAR(cost.dollars, 2 * 4 * 1e4 / 3600, 1e-9);
  EXPECT_GT(cost.mfu_full, cost.mfu_causal);
}

TEST(Search, ChangesGoBothWays) {
  TrainingRequest request = request_of("gpt2-1558m", "h200", 4);
  Estimate best = search_layouts(request)[0];
  for (const Change& change : cluster_changes(request, best)) {
    bool is_more = change.what.starts_with("twice"), is_less = change.what.starts_with("half") && change.is_possible;
    EXPECT_FALSE((is_more && change.gain < -1e-9) || (is_less && change.gain > 1e-9)) << change.what << change.gain;
  }
  for (const Change& change : layout_changes(request, best))
    EXPECT_FALSE(change.is_possible && change.gain > 0.001) << change.what;  // else it would have been found
}

TEST(Search, ChangesOfTheLayoutNameEachAxis) {
  TrainingRequest request = request_of("gpt2-1558m", "h200", 4);  // its 25 heads are not divided
  Estimate best = search_layouts(request)[0];
  ASSERT_EQ(best.layout.mesh.data, 4) << describe(best.layout);
  std::vector<Change> changes = layout_changes(request, best);
  auto has = [&](const char* what) {
    return std::any_of(changes.begin(), changes.end(), [&](const Change& change) { return change.what == what; });
  };
  EXPECT_TRUE(has("pipe 2"));
  EXPECT_TRUE(has("context 2"));
  EXPECT_FALSE(has("tensor 2"));
  EXPECT_FALSE(has("pipe 0"));
  EXPECT_FALSE(has("schedule 1f1b"));
}

TEST(Search, ChangesOfAPipelineNameItsSchedules) {
  TrainingRequest request = request_of("gpt3-13b", "dgx-a100", 16);
  request.allows = [](const ParallelLayout& layout) { return layout.mesh.pipe == 4; };
  Estimate best = search_layouts(request)[0];
  int schedules = 0;
  for (const Change& change : layout_changes(request, best)) {
    if (!change.what.starts_with("schedule ")) continue;
    EXPECT_NE(change.what, "schedule " + best.layout.mesh.schedule);
    EXPECT_LE(change.gain, 0) << change.what;
    ++schedules;
  }
  EXPECT_EQ(schedules, 2);
}

}  // namespace
}  // namespace tokamak
