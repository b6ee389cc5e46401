#include "advise/axis_seconds.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Four GPUs a node, 100 bytes/s in it; a GPU's way out of it has 10.
ClusterConfig cluster() {
  ClusterConfig cluster;
  cluster.gpus_per_node = 4;
  cluster.within.bandwidth.value = 100;
  cluster.within.latency.value = 0.5;
  cluster.between.bandwidth.value = 10;
  cluster.between.latency.value = 2;
  return cluster;
}

ZeroCut of(int64_t rows, int64_t columns, const MeshConfig& mesh) {
  ZeroCut cut;
  cut.add({rows, columns}, mesh);
  return cut;
}

TEST(AxisSeconds, GradientsAreAddedInANodeFirst) {
  MeshConfig mesh{.data = 2, .context = 4};
  AxisSeconds seconds(cluster(), mesh, 0.5);
  ZeroCut cut = of(8, 100, mesh);
  EXPECT_DOUBLE_EQ(seconds.added_over_context(cut, 2, false), 2 * 1600 * 0.75 / 100);
  EXPECT_DOUBLE_EQ(seconds.added_over_data(cut, 2, false), 2 * 1600 * 0.5 / 10);
  EXPECT_DOUBLE_EQ(seconds.added_over_context(cut, 2, true), 1600 / 0.5 * 0.75 / 100);
  EXPECT_DOUBLE_EQ(seconds.added_over_data(cut, 2, true), 400 / 0.5 * 0.5 / 10) << "a quarter of it";
  EXPECT_DOUBLE_EQ(seconds.gathered(cut, 2),
                   seconds.added_over_context(cut, 2, true) + seconds.added_over_data(cut, 2, true));
}

TEST(AxisSeconds, WhatAnAxisDoesNotCutIsNotScattered) {
  MeshConfig mesh{.data = 2, .context = 4};
  AxisSeconds seconds(cluster(), mesh, 0.5);
  ZeroCut cut = of(2, 99, mesh);  // data alone divides it
  EXPECT_EQ(seconds.added_over_context(cut, 2, true), seconds.added_over_context(cut, 2, false));
  EXPECT_EQ(seconds.gathered_over_context(cut, 2), 0);
  EXPECT_DOUBLE_EQ(seconds.gather_latencies(cut, 3), 3 * 2);
}

TEST(AxisSeconds, AnAxisOfOneRankSendsNothing) {
  MeshConfig mesh{.data = 8};
  AxisSeconds seconds(cluster(), mesh, 0.5);
  EXPECT_EQ(seconds.added_over_context(of(8, 8, mesh), 4, false), 0);
  EXPECT_EQ(seconds.context_gather(1000), 0);
  EXPECT_EQ(seconds.tensor_gather(1000), 0);
  EXPECT_EQ(seconds.context_latency(), 0);
  EXPECT_EQ(seconds.data_latency(), 2);
}

}  // namespace
}  // namespace tokamak
