#include "checkpoint/rank_machines.h"

#include <gtest/gtest.h>

#include <set>

namespace tokamak {
namespace {

RankMachines machines_of(const std::vector<std::string>& places, int rank = 0) { return {places, places, rank}; }

TEST(RankMachines, CopiesGoToTheNextMachine) {
  RankMachines three = machines_of({"a", "a", "b", "b", "c", "c"}, 3);
  EXPECT_EQ(three.count(), 3);
  EXPECT_EQ(three.first(), 2);
  EXPECT_FALSE(three.is_first());
  EXPECT_EQ(three.firsts(), (std::vector<int>{0, 2, 4}));
  std::vector<int> keepers;
  for (int rank = 0; rank < 6; ++rank) keepers.push_back(three.keeper_of(rank));
  EXPECT_EQ(keepers, (std::vector<int>{2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(three.kept_by(5), (std::vector<int>{3}));
  EXPECT_EQ(three.most_kept(), 1);
}

TEST(RankMachines, RanksOfALargerMachineShareTheKeepersOfASmallerOne) {
  RankMachines two = machines_of({"a", "a", "a", "b", "b"});
  EXPECT_EQ(two.kept_by(3), (std::vector<int>{0, 2}));
  EXPECT_EQ(two.kept_by(4), (std::vector<int>{1}));
  EXPECT_EQ(two.kept_by(0), (std::vector<int>{3}));
  EXPECT_EQ(two.kept_by(2), (std::vector<int>{}));
  EXPECT_EQ(two.most_kept(), 2);
}

TEST(RankMachines, RanksOfAMachineNeedNotLieSideBySide) {
  RankMachines two = machines_of({"a", "b", "a", "b"}, 2);
  EXPECT_EQ(two.first(), 0);
  EXPECT_EQ(two.keeper_of(2), 3);
  EXPECT_EQ(two.keeper_of(3), 2);
}

TEST(RankMachines, EveryRankHasAKeeperElsewhere) {
  for (int first = 1; first < 5; ++first)
    for (int second = 1; second < 5; ++second)
      for (int third = 1; third < 4; ++third) {
        std::vector<std::string> places(size_t(first), "a");
        places.insert(places.end(), size_t(second), "b");
        places.insert(places.end(), size_t(third), "c");
        RankMachines machines = machines_of(places);
        for (int rank = 0; rank < machines.ranks(); ++rank) {
          int keeper = machines.keeper_of(rank);
          EXPECT_NE(places[size_t(keeper)], places[size_t(rank)]);
          std::vector<int> kept = machines.kept_by(keeper);
          EXPECT_TRUE(std::set<int>(kept.begin(), kept.end()).contains(rank));
          EXPECT_LE(int(kept.size()), machines.most_kept());
        }
      }
}

}  // namespace
}  // namespace tokamak
