#include "advise/calibrate.h"

#include <gtest/gtest.h>

#include "advise/exact.h"
#include "tests/advise/request_of.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

RunConfig small_run() {
  RunConfig run = request_of("gpt2-124m", "h200", 1).run;
  run.model.layers = 2;
  run.compile.precision = Precision::kBf16;
  run.train.batch = 16;
  return run;
}

double seconds_at(ClusterConfig cluster, double load_clock) {
  cluster.gpu.load_clock = {load_clock, "a test"};
  ParallelLayout layout{.micro_batch = 16, .micro_batches = 1};
  layout.mesh.data = layout.mesh.slots = 1;
  return compile_layout(small_run(), layout, cluster, platform_of_rates(cluster.gpu)).seconds;
}

// Whatever the cluster says of it.
TEST(Calibrate, FindsTheClockOfAMeasuredRun) {
  ClusterConfig cluster = read_cluster("h200");
  double slow = seconds_at(cluster, 0.75), usual = seconds_at(cluster, 0.9);
  ASSERT_GT(slow, 1.02 * usual);
  for (double said : {0.0, 0.6, 1.0}) {
    cluster.gpu.load_clock = {said, "a test"};
    Calibration found = calibrate(small_run(), slow, cluster, platform_of_rates);
    EXPECT_NEAR(found.load_clock, 0.75, 0.005) << said;
    if (said == 0) EXPECT_DOUBLE_EQ(found.predicted, usual);
  }
}

TEST(Calibrate, RefusesWhatNoClockExplains) {
  ClusterConfig cluster = read_cluster("h200");
  double usual = seconds_at(cluster, 0.9);
  for (double seconds : {30 * usual, usual / 5})
    expect_user_error([&] { calibrate(small_run(), seconds, cluster, platform_of_rates); },
                      {"no clock of that GPU explains", "--cluster"});
}

}  // namespace
}  // namespace tokamak
