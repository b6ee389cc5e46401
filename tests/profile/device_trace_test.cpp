#include "backend/device_trace.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(TaggedActivities, GoByTheCallThatAskedForThem) {
  std::vector<DeviceRecord> records{
      {.correlation = 7, .begin = 5'000'000'000, .end = 5'000'001'000, .name = "late"},
      {.correlation = 9, .begin = 4'000'000'000, .end = 4'500'000'000, .name = "untagged"},
      {.correlation = 7, .begin = 3'999'999'000, .end = 4'000'000'000, .name = "early"}};
  std::vector<DeviceActivity> activities = tagged_activities(records, {{7, 42}, {8, 1}}, 4'000'000'000);
  ASSERT_EQ(activities.size(), 2u);
  EXPECT_EQ(activities[0].name, "early");
  EXPECT_NEAR(activities[0].begin, -1e-6, 1e-15) << "before the start";
  EXPECT_EQ(activities[1].tag, 42u);
  EXPECT_NEAR(activities[1].begin, 1, 1e-12);
  EXPECT_NEAR(activities[1].end, 1 + 1e-6, 1e-12);
}

}  // namespace
}  // namespace tokamak
