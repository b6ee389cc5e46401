#include "advise/links.h"

#include <gtest/gtest.h>

#include "config/cluster.h"
#include "cost/link_ways.h"

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

TEST(Links, CollectivesSendWhatRingsDo) {
  Link link{100, 0.5};
  EXPECT_EQ(all_reduce_seconds(link, 1, 1000), 0);
  EXPECT_DOUBLE_EQ(all_gather_seconds(link, 4, 1000), 7.5 + 0.5);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(link, 4, 1000), 15 + 0.5);
  EXPECT_DOUBLE_EQ(send_seconds(link, 1000), 10.5);
}

}  // namespace
}  // namespace tokamak
