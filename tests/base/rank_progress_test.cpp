#include "base/rank_progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/error.h"

namespace tokamak {
namespace {

TEST(RankProgress, IsInWhatItsThreadsAreIn) {
  RankProgress rank;
  EXPECT_EQ(rank.report().phase, RankPhase::kStart);
  {
    auto step = rank.enter_step(RankPhase::kStep, 1);
    EXPECT_EQ(rank.report().phase, RankPhase::kStart) << "the first step has what is done once";
  }
  rank.step_done(20);
  EXPECT_EQ(rank.report().phase, RankPhase::kBetweenSteps);
  auto data = rank.enter(RankPhase::kData);
  EXPECT_EQ(rank.report().phase, RankPhase::kData);
  {
    auto step = rank.enter_step(RankPhase::kStep, 2);
    EXPECT_EQ(rank.report().phase, RankPhase::kStep) << "data of the next step is read meanwhile";
    auto call = rank.wait_in([] { return "a barrier"; });
    EXPECT_EQ(rank.report().waits_in, "a barrier");
    EXPECT_EQ(rank.report().step, 2);
    EXPECT_TRUE(rank.report().waits());
  }
  EXPECT_EQ(rank.report().phase, RankPhase::kData);
  EXPECT_FALSE(rank.report().waits());
}

TEST(RankProgress, ThePaceIsThatOfTheSlowestOfTheLastFifty) {
  RankProgress rank;
  rank.step_done(1000);
  EXPECT_EQ(rank.report().pace, 0) << "the first step sets none";
  rank.step_done(7);
  for (int i = 0; i < 49; ++i) rank.step_done(2);
  EXPECT_EQ(rank.report().pace, 7);
  rank.step_done(2);
  EXPECT_EQ(rank.report().pace, 2);
}

TEST(RankProgress, MovesWithEveryKernelAndEveryChange) {
  RankProgress rank;
  int64_t before = rank.report().moves;
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(rank.report().moves, before);
  EXPECT_GE(rank.report().seconds, 0.03);
  auto begin = std::chrono::steady_clock::now();
  rank.moved();
  double seconds = rank.report().seconds;  // since then: however long this thread was not run
  EXPECT_LE(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  { auto in = rank.enter(RankPhase::kSave); }
  EXPECT_GT(rank.report().moves, before + 2);
}

TEST(RankProgress, ReportsTravelAsTexts) {
  RankReport report{.step = 12,
                    .phase = RankPhase::kStep,
                    .waits_in = "all_reduce(f32[8], sum)",
                    .seconds = 1.5,
                    .moves = 77,
                    .pace = 0.25};
  EXPECT_EQ(parse_rank_report(print(report)), report);
  EXPECT_EQ(parse_rank_report(print(RankReport())), RankReport());
  for (const char* wrong : {"", "1", "1 99 0 0 0 ", "1 -1 0 0 0 ", "a 1 0 0 0 "})
    EXPECT_THROW(parse_rank_report(wrong), UserError) << wrong;
}

}  // namespace
}  // namespace tokamak
