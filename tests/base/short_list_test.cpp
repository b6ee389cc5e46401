#include "base/short_list.h"

#include <gtest/gtest.h>

#include <random>

namespace tokamak {
namespace {

using List = ShortList<int, 4>;

TEST(ShortList, IsUsedAsAVectorIs) {
  List list{2, 3};
  list.push_back(4);
  list.insert(list.begin() + 1, 7);
  EXPECT_EQ(list, (List{2, 7, 3, 4}));
  list.erase(list.begin() + 1);
  list.erase(list.begin() + 1, list.begin() + 3);
  EXPECT_EQ(list, (List{2}));
  list.insert(list.begin() + 1, {8, 9});
  EXPECT_EQ(list, (List{2, 8, 9}));
  list.resize(5, 1);
  EXPECT_EQ(std::vector<int>(list), (std::vector<int>{2, 8, 9, 1, 1}));
  EXPECT_EQ(list.back(), 1);
}

TEST(ShortList, ComparesAsAVectorDoes) {
  EXPECT_NE(List{2}, (List{2, 1}));
  EXPECT_LT(List{2}, (List{2, 1}));
  EXPECT_LT((List{1, 9}), List{2});
}

TEST(ShortList, TakesAnElementOfItself) {
  List list{1, 2, 3, 4};
  list.push_back(list[0]);
  EXPECT_EQ(list, (List{1, 2, 3, 4, 1}));
}

// Short and long lists, copied and moved onto one another, against std::vector.
TEST(ShortList, CopiesAndMovesKeepWhatItHolds) {
  std::mt19937 random(1);
  std::vector<List> lists(6);
  std::vector<std::vector<int>> twins(6);
  for (int step = 0; step < 4000; ++step) {
    size_t a = random() % 6, b = random() % 6;
    switch (random() % 6) {
      case 0: lists[a] = lists[b], twins[a] = twins[b]; break;
      case 1:
        if (a == b) break;
        lists[a] = std::move(lists[b]), twins[a] = std::move(twins[b]);
        lists[b].clear(), twins[b].clear();
        break;
      case 2: lists[a] = List(lists[b]), twins[a] = twins[b]; break;
      case 3: lists[a].resize(random() % 10, 5), twins[a].resize(lists[a].size(), 5); break;
      case 4: {
        auto at = std::ptrdiff_t(random() % (twins[a].size() + 1)), end = std::ptrdiff_t(twins[a].size());
        lists[a].erase(lists[a].begin() + at, lists[a].begin() + end);
        twins[a].erase(twins[a].begin() + at, twins[a].begin() + end);
        break;
      }
      default: lists[a].push_back(step), twins[a].push_back(step);
    }
    if (lists[a].size() > 20) lists[a].clear(), twins[a].clear();
    ASSERT_EQ(lists[a], List(twins[a])) << step;
    ASSERT_EQ(lists[b], List(twins[b])) << step;
  }
}

}  // namespace
}  // namespace tokamak
