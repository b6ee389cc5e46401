// Which plans are recorded and replayed.
#include "plan/recording.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

Plan plan_of(size_t launches, double seconds, std::vector<PlannedStream> streams) {
  Plan plan;
  plan.launches.resize(launches);
  plan.seconds = seconds;
  plan.streams = std::move(streams);
  return plan;
}

const PlannedStream kCompute = {"compute"}, kSide = {"side"}, kLinks = {"communication", 1};

TEST(Recording, IsOfWhatComputesAlone) {
  EXPECT_TRUE(is_to_record(plan_of(1000, 1, {kCompute})));
  EXPECT_TRUE(is_to_record(plan_of(1000, 1, {kCompute, kSide})));
}

TEST(Recording, OfCollectivesBesideIsWhereTheHostHasNoTime) {
  EXPECT_TRUE(is_to_record(plan_of(1000, 0.01, {kCompute, kLinks})));
  EXPECT_FALSE(is_to_record(plan_of(1000, 0.1, {kCompute, kLinks})));
}

TEST(Recording, HoldsNoStreamThatGoesOn) {
  EXPECT_FALSE(is_to_record(plan_of(1000, 0.01, {kCompute, {"communication", 1, /*ends_with_run=*/false}})));
}

}  // namespace
}  // namespace tokamak
