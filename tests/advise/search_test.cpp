#include "advise/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/advise/request_of.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

TEST(Search, TheFastestComesFirstAndAllFit) {
  TrainingRequest request = request_of("gpt3-6.7b", "h200", 4);
  std::vector<Estimate> found = search_layouts(request);
  ASSERT_GE(found.size(), request.wanted);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(fits(found[i], request.cluster)) << describe(found[i].layout);
    EXPECT_GE(found[i].time.total(), found[i > 0 ? i - 1 : 0].time.total());
  }
  // 6.7B parameters take 107 GiB with their optimizer, so that one GPU alone computes much again.
  EXPECT_GT(found[0].layout.mesh.zero, 0);
}

// Most layouts are passed over by what they take roughly; all of them by themselves are the slow, obvious twin.
TEST(Search, NoLayoutThatIsPassedOverIsFaster) {
  for (int64_t gpus : {2, 4}) {
    TrainingRequest request = request_of("gpt2-124m", "h200", gpus);
    request.sequences = 16;
    std::map<std::string, double> of_meshes;
    for (const ParallelLayout& layout : allowed_layouts(request)) {
      Estimate one = estimate(request, layout);
      if (!fits(one, request.cluster)) continue;
      std::string mesh = describe(layout);
      double& best = of_meshes.try_emplace(mesh.substr(0, mesh.find(", micro-batch")), 1e300).first->second;
      best = std::min(best, one.time.total());
    }
    std::vector<double> sorted;
    for (const auto& [mesh, seconds] : of_meshes) sorted.push_back(seconds);
    std::sort(sorted.begin(), sorted.end());
    std::vector<Estimate> found = search_layouts(request);
    ASSERT_GE(found.size(), std::min(sorted.size(), request.wanted));
    EXPECT_EQ(found[0].time.total(), sorted[0]);
    for (size_t i = 0; i < std::min(sorted.size(), request.wanted); ++i)
      EXPECT_NEAR(found[i].time.total() / sorted[i], 1, 0.01) << describe(found[i].layout);
  }
}

// All numbers of chunks of a stage by themselves are the twin.
TEST(Search, FindsTheNumberOfChunks) {
  TrainingRequest request = request_of("gpt2-774m", "h200", 8);
  request.sequences = 32;
  request.allows = [](const ParallelLayout& layout) { return layout.mesh.pipe == 4 && layout.mesh.zero == 0; };
  request.schedules = {{"interleaved", 2, true}};
  ParallelLayout found = search_layouts(request)[0].layout;
  EXPECT_GT(found.mesh.interleave, 2) << describe(found);
  EXPECT_NE(describe(found).find(fmt::format("interleaved {}", found.mesh.interleave)), std::string::npos);
  ParallelLayout other = found;
  int64_t fastest = 2;
  double least = 1e300;
  for (other.mesh.interleave = 2; 4 * other.mesh.interleave <= 38; ++other.mesh.interleave) {
    double seconds = estimate(request, other).time.total();
    if (seconds < least) least = seconds, fastest = other.mesh.interleave;
  }
  EXPECT_EQ(found.mesh.interleave, fastest);
  request.schedules = {{"interleaved", 2}};
  EXPECT_EQ(search_layouts(request)[0].layout.mesh.interleave, 2);
}

// Layouts of other numbers of stages and micro-batches are made of blocks that are known already.
TEST(Search, CompilesBlocksOnce) {
  TrainingRequest request = request_of("gpt2-124m", "h200", 2);
  std::vector<Estimate> found = search_layouts(request);
  size_t blocks = request.library->size();
  EXPECT_EQ(search_layouts(request)[0].time.total(), found[0].time.total());
  EXPECT_EQ(request.library->size(), blocks);
  request.sequences *= 2;
  search_layouts(request);
  EXPECT_LE(request.library->size(), 2 * blocks);
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
  TrainingRequest request = request_of("gpt3-6.7b", "dgx-a100", 16);
  double before = search_layouts(request)[0].time.total();
  request.cluster.between.bandwidth.value *= 2;
  EXPECT_LE(search_layouts(request)[0].time.total(), before);
  request.cluster.within.bandwidth.value *= 2;
  EXPECT_LE(search_layouts(request)[0].time.total(), before);
  request.cluster.gpu.memory_bytes.value *= 2;
  EXPECT_LE(search_layouts(request)[0].time.total(), before);
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
  double step = double(request.sequences * request.run.model.context) / 1e6;  // a million tokens/s
  TrainingCost cost = cost_of(request, step);
  EXPECT_DOUBLE_EQ(cost.tokens_per_second, 1e6);
  EXPECT_DOUBLE_EQ(cost.seconds, 1e4);
  EXPECT_NEAR(cost.kilowatt_hours, 4 * 1e4 / 3600, 1e-9);  // half a node
  EXPECT_NEAR(cost.dollars, 2 * 4 * 1e4 / 3600, 1e-9);
  EXPECT_GT(cost.mfu_full, cost.mfu_causal);
}

}  // namespace
}  // namespace tokamak
