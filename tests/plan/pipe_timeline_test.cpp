#include "plan/pipe_timeline.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <numeric>

namespace tokamak {
namespace {

PipeTimeline simulate(std::string_view name, int64_t stages, int64_t interleave, int64_t micro_batches,
                      ChunkSeconds seconds = {}, double transfer = 0) {
  PipeSchedule schedule = make_pipe_schedule(name, stages, interleave, micro_batches);
  return simulate_pipe(schedule, std::vector(size_t(schedule.chunks), seconds), transfer);
}

// Fill and drain: as many micro-batches more than there are as there are other stages.
TEST(PipeTimeline, BubblesAreThoseOfTheSources) {
  for (int64_t P : {1, 2, 3, 4, 8})
    for (int64_t M : {1, 2, 4, 5, 8, 16, 24}) {
      double bubble = double(P - 1) / double(M + P - 1);
      EXPECT_NEAR(simulate("gpipe", P, 1, M).bubble, bubble, 1e-12);
      EXPECT_NEAR(simulate("1f1b", P, 1, M).bubble, bubble, 1e-12);
      for (int64_t V : {1, 2, 4}) {
        if (M % P != 0) continue;
        EXPECT_NEAR(simulate("interleaved", P, V, M).bubble, double(P - 1) / double(V * M + P - 1), 1e-12)
            << P << " " << V << " " << M;
      }
      PipeTimeline zero = simulate("zero_bubble", P, 1, M);
      if (P > 1) {
        EXPECT_LT(zero.bubble, bubble);
      }
      if (M >= P) {
        EXPECT_DOUBLE_EQ(zero.seconds, double(3 * M + P - 1)) << "(P - 1) (F + I - W) of waiting";
      }
    }
}

TEST(PipeTimeline, ShowsHowManyMicroBatchesAreInFlight) {
  EXPECT_EQ(simulate("gpipe", 3, 1, 7).in_flight, (std::vector<int64_t>{7, 7, 7}));
  EXPECT_EQ(simulate("1f1b", 3, 1, 7).in_flight, (std::vector<int64_t>{3, 2, 1}));
  EXPECT_EQ(simulate("zero_bubble", 3, 1, 7).in_flight, (std::vector<int64_t>{3, 3, 3}));
  EXPECT_EQ(simulate("interleaved", 2, 2, 4).in_flight, (std::vector<int64_t>{5, 3}));
}

TEST(PipeTimeline, GivesTheSpansOfEachStage) {
  PipeSchedule schedule = make_pipe_schedule("1f1b", 2, 1, 2);
  PipeTimeline timeline = simulate_pipe(schedule, {{.forward = 1, .backward = 2}, {.forward = 3, .backward = 4}}, 0.5);
  std::string text;
  for (const PipeSpan& span : timeline.spans)
    text += fmt::format("{} {} {}-{}\n", span.stage, pipe_label(schedule, span.action), span.start, span.end);
  EXPECT_EQ(text,
            "0 F0 0-1\n0 F1 1-2\n0 B0 9-11\n0 B1 16-18\n"
            "1 F0 1.5-4.5\n1 B0 4.5-8.5\n1 F1 8.5-11.5\n1 B1 11.5-15.5\n");
  EXPECT_DOUBLE_EQ(timeline.seconds, 18);
  EXPECT_DOUBLE_EQ(timeline.bubble, 1 - 20.0 / 36);
}

// Nothing waits for the last action of a stage but its own end.
TEST(PipeTimeline, TheLastActionOfAStageMayTakeOtherThanTheOthers) {
  PipeSchedule schedule = make_pipe_actions("1f1b", 2, 1, 2);
  std::vector<ChunkSeconds> chunks(2);
  EXPECT_EQ(simulate_pipe(schedule, chunks, 0).ends, (std::vector<double>{9, 7}));
  chunks[0].last = 5;
  EXPECT_EQ(simulate_pipe(schedule, chunks, 0).ends, (std::vector<double>{12, 7}));
  EXPECT_DOUBLE_EQ(simulate_pipe(schedule, chunks, 0).seconds, 12);
}

TEST(PipeTimeline, ATransferWithinAStageTakesNoTime) {
  EXPECT_DOUBLE_EQ(simulate("interleaved", 1, 3, 2, {}, 100).seconds, 3 * 2 * 3);
  EXPECT_GT(simulate("interleaved", 2, 3, 2, {}, 100).seconds, 100 * 10) << "5 forward and 5 back";
}

}  // namespace
}  // namespace tokamak
