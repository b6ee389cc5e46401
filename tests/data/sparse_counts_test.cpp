#include "data/sparse_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tokamak {
namespace {

TEST(SparseCounts, AreThoseOfAMap) {
  for (int64_t most_fresh : {1, 7, 1000}) {
    SparseCounts counts(most_fresh);
    std::map<int64_t, int64_t> slow;
    std::mt19937_64 random(3);
    for (int i = 0; i < 500; ++i) {
      auto item = int64_t(random() % 60) << (random() % 2 * 40);
      counts.add(item);
      ++slow[item];
      if (i % 100 != 0) continue;
      std::vector<SparseCounts::Count> expected;
      for (auto [key, uses] : slow) expected.push_back({key, uses});
      ASSERT_EQ(counts.counts(), expected) << i;
    }
  }
}

}  // namespace
}  // namespace tokamak
