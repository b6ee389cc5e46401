#include "run/rank_decisions.h"

#include "backend/ranks/inprocess.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

constexpr int kRanks = 3;

// What each rank learns when they say these.
std::vector<StepNews> heard(const std::vector<StepNews>& said) {
  std::vector<StepNews> all(said.size());
  run_ranks(int(said.size()), [&](Communicator& world) {
    MeshRanks ranks({{{"data", kRanks}}}, world);
    all[size_t(world.rank())] = tell_all(&ranks, said[size_t(world.rank())]);
  });
  return all;
}

TEST(RankDecisions, GoOnWhenNobodySaysOtherwise) {
  for (const StepNews& news : heard(std::vector<StepNews>(kRanks))) {
    EXPECT_FALSE(news.stops);
    EXPECT_EQ(news.failure, "");
  }
}

TEST(RankDecisions, OneRankStopsAllAndTheFirstFailureIsTold) {
  for (const StepNews& news : heard({{}, {.stops = true, .failure = "no file"}, {.failure = "bad token"}})) {
    EXPECT_TRUE(news.stops);
    EXPECT_EQ(news.failure, "no file");
  }
  for (const StepNews& news : heard({{}, {}, {.failure = "stop"}})) {
    EXPECT_FALSE(news.stops);
    EXPECT_EQ(news.failure, "stop");
  }
}

TEST(RankDecisions, AllGoByTheLeastAndByTheFirstThatSaysSomething) {
  run_ranks(kRanks, [](Communicator& world) {
    MeshRanks ranks({{{"data", kRanks}}}, world);
    EXPECT_EQ(least_of(&ranks, 10 - world.rank()), 8);
    EXPECT_EQ(least_of(&ranks, 10 + world.rank()), 10);
    EXPECT_EQ(first_of(&ranks, world.rank() == 0 ? "" : "rank " + std::to_string(world.rank())), "rank 1");
    EXPECT_TRUE(any_of(&ranks, world.rank() == 2));
    EXPECT_FALSE(any_of(&ranks, false));
  });
}

TEST(RankDecisions, OneRankAloneDecidesByItself) {
  EXPECT_EQ(least_of(nullptr, 7), 7);
  StepNews news = tell_all(nullptr, {.stops = true, .failure = "x"});
  EXPECT_TRUE(news.stops);
  EXPECT_EQ(news.failure, "x");
}

}  // namespace
}  // namespace tokamak::test
