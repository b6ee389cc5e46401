#include "advise/links.h"

#include <gtest/gtest.h>

#include "config/cluster.h"
#include "cost/link_ways.h"
#include "cost/price.h"

namespace tokamak {
namespace {

TEST(Links, AnAxisLeavesTheNodeOverItsOwnWaysOut) {
  ClusterConfig dgx = read_cluster("dgx-a100");
  double within = dgx.within.bandwidth.value, between = dgx.between.bandwidth.value;
  EXPECT_EQ(axis_link(dgx, 1, 8).bandwidth, within);
  EXPECT_EQ(axis_link(dgx, 2, 4).bandwidth, within);
  EXPECT_EQ(axis_link(dgx, 8, 2).bandwidth, between);      // one rank a node
  EXPECT_EQ(axis_link(dgx, 2, 8).bandwidth, 4 * between);  // four
  EXPECT_EQ(axis_link(dgx, 64, 2).bandwidth, between);     // nodes apart
  dgx.between.bandwidth.value = within / 4;
  EXPECT_EQ(axis_link(dgx, 2, 8).bandwidth, within);
  EXPECT_EQ(axis_link(dgx, 1, 3072).bandwidth, within) << "never more than its own link";
  EXPECT_EQ(axis_link(dgx, 8, 2).bandwidth, within / 4);
  EXPECT_EQ(axis_link(dgx, 8, 2).latency, dgx.between.latency.value);
}

TEST(Links, NodesBeyondTwoAddToRingsAndTrees) {
  ClusterConfig dgx = read_cluster("dgx-a100");
  for (auto [stride, size] : {std::pair(1, 8), std::pair(8, 2), std::pair(1, 16), std::pair(64, 2)})
    EXPECT_FALSE(axis_link(dgx, stride, size).grows()) << stride << " " << size << ": what was measured";
  Link rail = axis_link(dgx, 8, 16);
  EXPECT_NEAR(rail.round, 14 * 14e-6, 1e-12) << "a rank on each of 16 nodes";
  EXPECT_NEAR(rail.tree, 2 * 3 * 14e-6, 1e-12) << "4 levels, of which two nodes have one";
  EXPECT_NEAR(rail.tree_low, 2 * 3 * 8.5e-6, 1e-12);
  EXPECT_NEAR(axis_link(dgx, 1, 128).round, 14 * (14e-6 + 7 * 3.4e-6), 1e-12) << "a ring through all of a node";
  dgx.between.hop = {28e-6, "test"};
  EXPECT_NEAR(axis_link(dgx, 8, 16).round_low, 14 * 8e-6, 1e-12) << "small messages in proportion";
}

TEST(Links, FewBytesGoByTreeAndManyByRing) {
  ClusterConfig dgx = read_cluster("dgx-a100");
  Link link = axis_link(dgx, 8, 128);
  double least = dgx.between.latency.value;
  EXPECT_NEAR(all_reduce_seconds(link, 128, 8), least + 2 * 6 * 8.5e-6, 1e-6);
  EXPECT_NEAR(all_reduce_seconds(link, 128, 1e10), 2e10 * 127 / 128 / link.bandwidth + least + 2 * link.round, 1e-9);
  EXPECT_NEAR(all_gather_seconds(link, 128, 8), least + link.round_low, 1e-6) << "there is no tree for it";
}

// NVIDIA/nccl#1455: by NVLS 8 H100 add 273 GB/s, whatever their number, and rings 370 GB/s, which is more among few.
TEST(Links, SwitchesOfANodeAddUpForManyOfItsGpus) {
  ClusterConfig dgx = read_cluster("dgx-h100");
  auto seconds = [&](int64_t gpus, double bytes) { return all_reduce_seconds(axis_link(dgx, 1, gpus), gpus, bytes); };
  double two = seconds(2, 1e9), eight = seconds(8, 1e9);
  dgx.within.sums = {273e9, "NVIDIA/nccl#1455"};
  EXPECT_EQ(seconds(2, 1e9), two) << "around the ring";
  EXPECT_NEAR(seconds(8, 1e9), 1e9 / 273e9 + dgx.within.latency.value, 1e-9);
  EXPECT_LT(seconds(8, 1e9), 0.8 * eight);
  EXPECT_EQ(all_gather_seconds(axis_link(dgx, 1, 8), 8, 1e9), 1e9 * 7 / 8 / 370e9 + dgx.within.latency.value)
      << "a gather adds nothing up";
  Target target = with_links({}, dgx, {.data = 1, .tensor = 8}).target;
  EXPECT_DOUBLE_EQ(target.link("tensor" + std::string(kSwitchWay)).bandwidth, 273e9 * 2 * 7 / 8);
  EXPECT_EQ(target.link("tensor" + std::string(kSumWay)).bandwidth, 370e9);
}

// NVIDIA/nccl#320: 20 GB/s for each way out of 200 Gb/s, and 110 of eight, which is half of what NVLink has.
TEST(Links, SwitchesBetweenNodesAddUpWithoutRounds) {
  ClusterConfig dgx = read_cluster("dgx-a100");
  Link ring = axis_link(dgx, 8, 128);
  dgx.between.sums = {20e9, "NVIDIA/nccl#320"};
  Link link = axis_link(dgx, 8, 128);
  EXPECT_NEAR(all_reduce_seconds(link, 128, 1e9), 1e9 / 20e9 + link.latency, 1e-6);
  EXPECT_LT(all_reduce_seconds(link, 128, 1e9), 0.6 * all_reduce_seconds(ring, 128, 1e9));
  EXPECT_LT(all_reduce_seconds(link, 128, 8), all_reduce_seconds(ring, 128, 8)) << "no tree to climb";
  EXPECT_EQ(all_gather_seconds(link, 128, 1e9), all_gather_seconds(ring, 128, 1e9));
  EXPECT_NEAR(axis_link(dgx, 1, 128).sums, 120e9 * 2 * 127 / 128, 1) << "of 160, what half of NVLink's 240 carries";
  EXPECT_EQ(axis_link(dgx, 1, 8).sums, 0) << "a node of its own";
}

TEST(Links, GathersGoByParallelTreesWhereThereAreAny) {
  ClusterConfig dgx = read_cluster("dgx-h100");
  Link ring = axis_link(dgx, 8, 1024);
  dgx.fabric.pat = true;
  Link link = axis_link(dgx, 8, 1024);
  EXPECT_NEAR(link.parallel_trees, 9 * 4e-6 + 1022 * 2.8e-6, 1e-5) << "levels, and a part for each rank";
  EXPECT_LT(all_gather_seconds(link, 1024, 1e6), 0.8 * all_gather_seconds(ring, 1024, 1e6));
  EXPECT_EQ(all_gather_seconds(link, 1024, 1e12), all_gather_seconds(ring, 1024, 1e12)) << "many bytes go by ring";
  EXPECT_EQ(all_reduce_seconds(link, 1024, 1e6), all_reduce_seconds(ring, 1024, 1e6));
  EXPECT_EQ(axis_link(dgx, 1, 1024).parallel_trees, 0) << "of one GPU a node alone";
  Target target = with_links({}, dgx, {.data = 1024, .tensor = 8}).target;
  EXPECT_EQ(target.axis_links.count("data" + std::string(kParallelTreesWay)), 1u);
}

TEST(Links, FewRingsCrossPodsAndManyTransfersShareTheirWayOut) {
  ClusterConfig meta = read_cluster("meta-24k");
  double out = meta.between.bandwidth.value;
  EXPECT_EQ(axis_link(meta, 8, 3072).bandwidth, out) << "8 rings, of 439 ways out of a pod";
  EXPECT_EQ(axis_link(meta, 8, 384).bandwidth, out) << "a pod";
  EXPECT_NEAR(axis_link(meta, 6144, 4).bandwidth, out / 7, 1) << "all of a pod send to the next stage";
  meta.fabric.spine_share = {0.6, "test"};
  EXPECT_EQ(axis_link(meta, 8, 2).bandwidth, out) << "two nodes share a leaf";
  EXPECT_NEAR(axis_link(meta, 8, 4).bandwidth, 0.6 * out, 1);
  meta.fabric.rails = true;
  EXPECT_EQ(axis_link(meta, 8, 16).bandwidth, out) << "so do 16 GPUs of one number";
}

TEST(Links, SwitchesAddWhereALeafIsLeft) {
  ClusterConfig rails = read_cluster("dgx-h100"), racks = rails;
  racks.fabric.rails = false;
  double one = rails.fabric.switch_latency.value;
  Link few = axis_link(rails, 8, 16), far = axis_link(racks, 8, 16);
  EXPECT_NEAR(far.round - few.round, 14 * 2 * one * (1.0 / 4 - 1.0 / 32), 1e-12) << "a neighbour of four is elsewhere";
  EXPECT_GT(far.tree, few.tree);
  EXPECT_NEAR(axis_link(rails, 8 * 32, 4).round, 2 * (14e-6 + 2 * one), 1e-12) << "each is";
}

TEST(Links, WaysAreOfAxesOfManyNodesAlone) {
  ClusterConfig dgx = read_cluster("dgx-h100");
  MeshConfig mesh{.pipe = 4, .data = 16, .tensor = 8};
  Target target = with_links({}, dgx, mesh).target;
  EXPECT_EQ(target.axis_links.count("data" + std::string(kTreeWay)), 1u);
  EXPECT_EQ(target.axis_links.count("tensor" + std::string(kTreeWay)), 0u);
  EXPECT_EQ(target.axis_links.count("pipe" + std::string(kTreeWay)), 0u);
  EXPECT_EQ(target.link("pipe").seconds, dgx.between.latency.value) << "stages send to their neighbours";
  Link link = axis_link(dgx, 8, 16);
  EXPECT_EQ(target.link("data").seconds, link.latency + link.round);
  EXPECT_EQ(target.link("data" + std::string(kSumWay)).seconds, link.latency + 2 * link.round);
}

// NVIDIA/nccl#689 and nccl-tests#100: 24 multiprocessors within a node of A100, 16 between nodes that have eight ways
// out, of 160 where NVLink has 240.
TEST(Links, SlowerLinksTakeLessOfAnA100) {
  Platform platform;
  platform.target.link_units = 0.21;
  auto taken = [&](const std::string& cluster, const MeshConfig& mesh, const std::string& axis) {
    return units_taken(with_links(platform, read_cluster(cluster), mesh).target, axis);
  };
  EXPECT_DOUBLE_EQ(taken("dgx-a100", {.data = 8}, "data"), 0.21) << "within a node";
  EXPECT_DOUBLE_EQ(taken("dgx-a100", {.data = 16}, "data"), 0.21 * 16 / 24);
  MeshConfig both{.data = 16, .tensor = 8};
  EXPECT_DOUBLE_EQ(taken("dgx-a100", both, "data"), 0.21 * 2 / 24) << "one way out";
  EXPECT_DOUBLE_EQ(taken("dgx-a100", both, "tensor"), 0.21);
  EXPECT_DOUBLE_EQ(taken("dgx-h100", both, "data"), 0.21) << "its products wait for few multiprocessors as for many";
}

TEST(Links, CollectivesSendWhatRingsDo) {
  Link link{100, 0.5};
  EXPECT_EQ(all_reduce_seconds(link, 1, 1000), 0);
  EXPECT_DOUBLE_EQ(all_gather_seconds(link, 4, 1000), 7.5 + 0.5);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(link, 4, 1000), 15 + 0.5);
  EXPECT_DOUBLE_EQ(send_seconds(link, 1000), 10.5);
}

}  // namespace
}  // namespace tokamak
