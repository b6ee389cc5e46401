#include "advise/failures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/cluster.h"

namespace tokamak {
namespace {

constexpr double kDay = 24 * 3600;

ClusterConfig with_failures(double mtbf, double restart, double checkpoint) {
  ClusterConfig cluster = read_cluster("dgx-h100");
  cluster.failures = {{mtbf, "test"}, {restart, "test"}, {checkpoint, "test"}};
  return cluster;
}

TEST(Failures, SharesAddUpAndTheIntervalLosesLeast) {
  for (int64_t gpus : {1000, 16384, 100000}) {
    ClusterConfig cluster = with_failures(2e8, 600, 30);
    PlannedGoodput g = goodput(cluster, gpus, {0});
    EXPECT_DOUBLE_EQ(g.between, 2e8 / double(gpus));
    EXPECT_NEAR(g.share + g.restarting + g.repeated + g.checkpointing, 1, 1e-12);
    EXPECT_GT(g.repeated, 0);
    // Of an interval and its checkpoint, what is expected to pass until both are through.
    auto kept = [&](double interval) {
      return std::exp(-600 / g.between) * interval / g.between / std::expm1((interval + 30) / g.between);
    };
    EXPECT_NEAR(g.share, kept(g.interval), 1e-12);
    for (double other : {0.8, 1.25}) EXPECT_LT(kept(other * g.interval), g.share) << gpus << " GPUs, " << other;
  }
}

TEST(Failures, FewFailuresCostWhatYoungHas) {
  PlannedGoodput g = goodput(with_failures(1e9, 600, 10), 1000, {0});
  double interval = std::sqrt(2 * 10 * 1e6);
  EXPECT_NEAR(g.interval, interval, 0.01 * interval);
  EXPECT_NEAR(1 - g.share, 10 / interval + interval / 2 / 1e6 + 600 / 1e6, 1e-4);
}

TEST(Failures, ThoseOfLlama3AreTheUsualOnes) {
  PlannedGoodput g = goodput(read_cluster("dgx-h100"), 16384, {1e9});
  EXPECT_NEAR(54 * kDay / g.between, 419, 0.5);
  EXPECT_GT(g.share, 0.9) << "more than 90% there (arXiv 2407.21783)";
  EXPECT_FALSE(expects_failures(g, 3600));
  EXPECT_TRUE(expects_failures(g, kDay));
  EXPECT_NE(g.by.mtbf.source.find("2407.21783"), std::string::npos);
  PlannedGoodput more = goodput(read_cluster("dgx-h100"), 100000, {1e9});
  EXPECT_LT(more.share, 0.8) << "O(100K) GPUs are said to keep 44% (arXiv 2602.00277)";
  EXPECT_GT(goodput(read_cluster("dgx-h100"), 16384, {1e8}).share, g.share) << "less to copy";
}

TEST(Failures, StorageBoundsHowOftenCheckpointsAreWritten) {
  ClusterConfig cluster = with_failures(2e8, 600, 1);
  CheckpointBytes bytes{.gpu = 1e9, .all = 1e13};
  PlannedGoodput without = goodput(cluster, 100000, bytes);
  EXPECT_EQ(without.writing, 0) << "nothing is said of it";
  cluster.failures.storage = {1e15, "test"};
  EXPECT_NEAR(goodput(cluster, 100000, bytes).share, without.share, 1e-4) << "as good as at once";
  cluster.failures.storage = {1e11, "test"};
  PlannedGoodput slow = goodput(cluster, 100000, bytes);
  EXPECT_DOUBLE_EQ(slow.writing, 100);
  EXPECT_DOUBLE_EQ(slow.interval, 100) << "not each minute, as would be best";
  EXPECT_LT(without.interval, 100);
  EXPECT_LT(slow.share, 0.98 * without.share);
  EXPECT_NEAR(slow.share + slow.restarting + slow.repeated + slow.checkpointing + slow.waiting, 1, 1e-12);
  cluster.failures.storage = {1e10, "test"};
  EXPECT_NEAR(goodput(cluster, 100000, bytes).restarting, 1 - std::exp(-1000 / slow.between), 1e-12)
      << "longer than a restart is to read it";
}

TEST(Failures, NodesStandByForThoseThatAreRepaired) {
  ClusterConfig cluster = with_failures(2e8, 600, 1);
  PlannedGoodput always = goodput(cluster, 10000, {});
  cluster.failures.repair = {2 * always.between, "test"};
  auto waiting = [&](int64_t spares) {
    cluster.failures.spares = spares;
    return goodput(cluster, 10000, {}).waiting;
  };
  EXPECT_NEAR(waiting(0), 2.0 / 3, 1e-12) << "one interval of work, then two of repair";
  EXPECT_NEAR(waiting(1), 2.0 / 5, 1e-12) << "Erlang: 2 / (1 + 2 + 2)";
  EXPECT_LT(waiting(8), 1e-3);
  cluster.failures.spares = 1;
  PlannedGoodput one = goodput(cluster, 10000, {});
  EXPECT_NEAR(one.share, always.share * 3 / 5, 1e-12);
  EXPECT_NEAR(one.share + one.restarting + one.repeated + one.checkpointing + one.waiting, 1, 1e-12);
}

TEST(Failures, WhatAClusterSaysOfThemCounts) {
  ClusterConfig cluster = parse_cluster(R"(
name = "mine"
gpus_per_node = 1
nodes = 1
node_power = {value = 3000, source = "the meter"}
gpu = {model = "h100"}
[failures]
restart = {value = 60, source = "our logs"}
)",
                                        "mine.toml");
  FailureConfig failures = failures_of(cluster, 1e9);
  EXPECT_EQ(failures.restart.value, 60);
  EXPECT_EQ(failures.restart.source, "our logs");
  EXPECT_GT(failures.mtbf.value, 1e8);
}

}  // namespace
}  // namespace tokamak
