#include "backend/device_trace.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

TEST(TaggedActivities, GoByTheCallThatAskedForThem) {
  DeviceReport report;
  report.records = {{.call = 7, .begin = 5 * kSecond, .end = 5 * kSecond + 1000, .name = "late"},
                    {.call = 9, .begin = 4 * kSecond, .end = 4 * kSecond + 5000, .name = "untagged"},
                    {.call = 7, .begin = 4 * kSecond - 1000, .end = 4 * kSecond, .name = "early"}};
  report.tags = {{7, 42}, {8, 1}};
  std::vector<DeviceActivity> activities = tagged_activities(report, 4 * kSecond);
  ASSERT_EQ(activities.size(), 2u);
  EXPECT_EQ(activities[0].name, "early");
  EXPECT_NEAR(activities[0].begin, -1e-6, 1e-15) << "before the start";
  EXPECT_EQ(activities[1].tag, 42u);
  EXPECT_NEAR(activities[1].begin, 1, 1e-12);
  EXPECT_NEAR(activities[1].end, 1 + 1e-6, 1e-12);
}

TEST(TaggedActivities, OfALibrarysOwnThreadGoByWhoeverWaitedThen) {
  DeviceReport report;
  for (uint32_t call : {1, 2, 3, 4, 5}) report.records.push_back({.call = call, .begin = call, .end = call + 1});
  report.spans = {{.tag = 10, .begin = 100, .end = 900},
                  {.tag = 11, .begin = 200, .end = 300},
                  {.tag = 12, .begin = 400, .end = 500}};
  report.asked = {{1, 250}, {2, 350}, {3, 500}, {4, 950}};
  report.tags = {{3, 11}};
  std::vector<DeviceActivity> activities = tagged_activities(report, 0);
  ASSERT_EQ(activities.size(), 3u) << "one call was made outside all spans, and one is unknown";
  EXPECT_EQ(activities[0].tag, 11u) << "the innermost";
  EXPECT_EQ(activities[1].tag, 10u) << "between two inner ones";
  EXPECT_EQ(activities[2].tag, 11u) << "a thread's own tag comes first";
}

}  // namespace
}  // namespace tokamak
