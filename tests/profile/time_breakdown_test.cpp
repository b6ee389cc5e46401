#include "profile/time_breakdown.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace tokamak {
namespace {

ActivitySpan kernel(WorkClass work, double begin, double end) { return {activity_of(work), work, begin, end}; }

double row(const TimeBreakdown& breakdown, const std::string& name) {
  for (const BreakdownRow& row : rows_of(breakdown))
    if (row.name == name) return row.seconds;
  ADD_FAILURE() << "no row " << name;
  return -1;
}

TEST(TimeBreakdown, GivesEveryMomentToTheFirstThatHasIt) {
  std::vector<ActivitySpan> spans{
      {Activity::kRun, {}, 1, 9},          kernel(WorkClass::kMatmul, 1, 3), kernel(WorkClass::kCommunication, 2, 5),
      kernel(WorkClass::kAttention, 6, 7), kernel(WorkClass::kCopy, 6.5, 8), {Activity::kDataWait, {}, 8.5, 9.5},
      {Activity::kDataWait, {}, 0.5, 7.5}};
  TimeBreakdown breakdown = break_down(spans, 10);
  EXPECT_DOUBLE_EQ(row(breakdown, "matmul"), 2);
  EXPECT_DOUBLE_EQ(row(breakdown, "attention"), 1);
  EXPECT_DOUBLE_EQ(row(breakdown, "communication, exposed"), 2);
  EXPECT_DOUBLE_EQ(breakdown.hidden_communication, 1);
  EXPECT_DOUBLE_EQ(row(breakdown, "copies"), 1);
  EXPECT_DOUBLE_EQ(row(breakdown, "launch gaps"), 2);  // from 5 to 6, from 8 to 9
  EXPECT_DOUBLE_EQ(row(breakdown, "data wait"), 1);    // from 0.5 to 1, from 9 to 9.5
  EXPECT_DOUBLE_EQ(row(breakdown, "idle"), 1);
  EXPECT_DOUBLE_EQ(breakdown.sum(), 10);
}

TEST(TimeBreakdown, SharesAMomentAmongKernelsOfSeveralStreams) {
  std::vector<ActivitySpan> spans{kernel(WorkClass::kMatmul, 0, 4), kernel(WorkClass::kMatmul, 0, 2),
                                  kernel(WorkClass::kElementwise, 1, 3)};
  TimeBreakdown breakdown = break_down(spans, 4);
  EXPECT_DOUBLE_EQ(breakdown.of(WorkClass::kMatmul), 1 + 2.0 / 3 + 0.5 + 1);
  EXPECT_DOUBLE_EQ(breakdown.of(WorkClass::kElementwise), 1.0 / 3 + 0.5);
}

TEST(TimeBreakdown, AMomentWithTwoCollectivesIsOneMoment) {
  std::vector<ActivitySpan> spans{kernel(WorkClass::kMatmul, 0, 3), kernel(WorkClass::kCommunication, 1, 4),
                                  kernel(WorkClass::kCommunication, 2, 5), kernel(WorkClass::kCopy, 4, 6)};
  TimeBreakdown breakdown = break_down(spans, 6);
  EXPECT_DOUBLE_EQ(breakdown.hidden_communication, 2);
  EXPECT_DOUBLE_EQ(row(breakdown, "communication, exposed"), 2) << "also beside a copy";
  EXPECT_DOUBLE_EQ(row(breakdown, "copies"), 1);
}

TEST(TimeBreakdown, CutsWhatReachesBeyondTheTimeAccountedFor) {
  std::vector<ActivitySpan> spans{kernel(WorkClass::kMatmul, -1, 1), kernel(WorkClass::kOptimizer, 3, 7),
                                  kernel(WorkClass::kCopy, 8, 9)};
  TimeBreakdown breakdown = break_down(spans, 4);
  EXPECT_DOUBLE_EQ(breakdown.of(WorkClass::kMatmul), 1);
  EXPECT_DOUBLE_EQ(breakdown.of(WorkClass::kOptimizer), 1);
  EXPECT_DOUBLE_EQ(breakdown.idle, 2);
}

TEST(TimeBreakdown, RowsAddUpWhateverRan) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<ActivitySpan> spans;
    for (uint64_t i = 0; i < 40; ++i) {
      auto draw = philox4x32(seed, i);
      auto work = kWorkClasses[draw[0] % kWorkClasses.size()];
      ActivitySpan span = kernel(work, double(draw[1] % 1000) - 50, 0);
      span.end = span.begin + double(draw[2] % 100);
      if (draw[3] % 4 == 0) span.activity = draw[3] % 8 ? Activity::kRun : Activity::kDataWait;
      spans.push_back(span);
    }
    TimeBreakdown breakdown = break_down(spans, 900);
    double sum = 0;
    for (const BreakdownRow& row : rows_of(breakdown)) {
      EXPECT_GE(row.seconds, 0) << row.name;
      sum += row.seconds;
    }
    EXPECT_NEAR(sum, 900, 1e-9);
    EXPECT_DOUBLE_EQ(sum, breakdown.sum());
  }
}

}  // namespace
}  // namespace tokamak
