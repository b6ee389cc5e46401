#include "advise/this_machine.h"

#include <gtest/gtest.h>

#include "config/cluster.h"
#include "graph/gpu_target.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

MeasuredGpu measured(const char* name) {
  return {.name = name,
          .major = 9,
          .minor = 0,
          .multiprocessors = 132,
          .l2_bytes = 62914560,
          .shared_bytes = 232448,
          .free_bytes = 100'000'000'000,
          .memory_bandwidth = 4.5e12};
}

TEST(ThisMachine, HasWhatWasMeasuredAndTheRestOfItsKind) {
  ClusterConfig machine = this_machine(measured("NVIDIA H200"), 2), h200 = read_cluster("h200");
  EXPECT_EQ(machine.gpus_per_node, 2);
  EXPECT_EQ(machine.nodes, 1);
  EXPECT_EQ(machine.gpu.memory_bytes.value, 1e11);
  EXPECT_EQ(machine.gpu.memory_bandwidth.value, 4.5e12);
  EXPECT_EQ(gpu_rates(machine.gpu).clock, gpu_rates(h200.gpu).clock);
  EXPECT_EQ(machine.gpu.half_flops.value, h200.gpu.half_flops.value);
  EXPECT_EQ(machine.within.bandwidth.value, h200.within.bandwidth.value);
  EXPECT_EQ(machine.node_power.value, 1400);
  EXPECT_FALSE(machine.price.is_known());
}

TEST(ThisMachine, IsOneGpuWhereLinksAreNotKnown) {
  ClusterConfig machine = this_machine(measured("NVIDIA H200 NVL"), 2);
  EXPECT_EQ(machine.gpus_per_node, 1);
  EXPECT_NE(machine.summary.find("not known"), machine.summary.npos);
}

TEST(ThisMachine, AnUnknownGpuIsRefused) {
  expect_user_error([] { this_machine(measured("NVIDIA GB10"), 1); }, {"[cluster]", "NVIDIA GB10", "TOML"});
}

}  // namespace
}  // namespace tokamak
