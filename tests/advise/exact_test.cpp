#include "advise/exact.h"

#include <gtest/gtest.h>

#include "backend/cuda/cuda_backend.h"
#include "config/cluster.h"
#include "config/preset.h"

namespace tokamak {
namespace {

class Exact : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::is_built()) GTEST_SKIP() << "built without CUDA, whose kernels a step is compiled for";
    config_.model.preset = "gpt2-124m";
    apply_preset(config_.model);
  }
  Platform platform(const ClusterConfig& cluster) { return cuda::nominal_platform(cluster.gpu); }

  RunConfig config_;
};

TEST_F(Exact, EachAxisHasItsOwnLinks) {
  ClusterConfig cluster = read_cluster("dgx-a100"), slow = cluster;
  slow.between.bandwidth.value /= 10;
  auto seconds = [&](MeshConfig mesh, const ClusterConfig& on) {
    mesh.slots = 1;
    return compile_layout(config_, {.mesh = mesh, .micro_batch = 4}, on, platform(on)).seconds;
  };
  // Four tensor ranks are of one node; sixteen data ranks are of two.
  EXPECT_EQ(seconds({.data = 1, .tensor = 4}, slow), seconds({.data = 1, .tensor = 4}, cluster));
  EXPECT_GT(seconds({.data = 16, .tensor = 1}, slow), seconds({.data = 16, .tensor = 1}, cluster));
}

TEST_F(Exact, WhatIsTooMuchIsCompiledWithASmallerBudget) {
  ClusterConfig cluster = read_cluster("h200");
  ParallelLayout layout{.mesh = {.data = 1}, .micro_batch = 16};
  layout.mesh.slots = 1;
  double whole = compile_layout(config_, layout, cluster, platform(cluster)).bytes;
  cluster.gpu.memory_bytes.value = 0.8 * whole;
  std::optional<CompiledLayout> plan = compile_within_memory(config_, layout, cluster, platform(cluster));
  ASSERT_TRUE(plan);
  EXPECT_LE(plan->bytes, cluster.gpu.memory_bytes.value);
  EXPECT_GT(layout.budget_gib, 0);
  cluster.gpu.memory_bytes.value = 0.05 * whole;
  EXPECT_FALSE(compile_within_memory(config_, layout, cluster, platform(cluster)));
}

}  // namespace
}  // namespace tokamak
