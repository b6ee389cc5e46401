#include "advise/links.h"

#include <gtest/gtest.h>

#include "config/cluster.h"

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

TEST(Links, CollectivesSendWhatRingsDo) {
  Link link{100, 0.5};
  EXPECT_EQ(all_reduce_seconds(link, 1, 1000), 0);
  EXPECT_DOUBLE_EQ(all_gather_seconds(link, 4, 1000), 7.5 + 0.5);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(link, 4, 1000), 15 + 0.5);
  EXPECT_DOUBLE_EQ(send_seconds(link, 1000), 10.5);
}

}  // namespace
}  // namespace tokamak
