#include "data/permutation.h"

#include <gtest/gtest.h>

#include <vector>

namespace tokamak {
namespace {

std::vector<int64_t> order(int64_t size, uint64_t seed, uint64_t epoch) {
  std::vector<int64_t> result;
  Permutation permutation(size, seed, epoch);
  for (int64_t i = 0; i < size; ++i) result.push_back(permutation(i));
  return result;
}

TEST(Permutation, HitsEveryElementOnce) {
  for (int64_t size : {1, 2, 3, 4, 5, 15, 16, 17, 64, 65, 1000, 4097}) {
    std::vector<int> hits(static_cast<size_t>(size));
    for (int64_t element : order(size, 7, 3)) ++hits.at(size_t(element));
    for (int hit : hits) EXPECT_EQ(hit, 1) << "size " << size;
  }
}

TEST(Permutation, DiffersBySeedAndEpoch) {
  EXPECT_EQ(order(1000, 1, 0), order(1000, 1, 0));
  EXPECT_NE(order(1000, 1, 0), order(1000, 2, 0));
  EXPECT_NE(order(1000, 1, 0), order(1000, 1, 1));
}

// Every element should be equally likely at every place: chi-squared over 5 x 5 for 20,000 orders. It has 16 degrees of
// freedom, so a fair shuffle exceeds 50 about twice in 100,000 times.
TEST(Permutation, IsFairForSmallSizes) {
  constexpr int64_t kSize = 5;
  constexpr int kOrders = 20000;
  double counts[kSize][kSize] = {};
  for (uint64_t epoch = 0; epoch < kOrders; ++epoch) {
    std::vector<int64_t> places = order(kSize, 42, epoch);
    for (size_t i = 0; i < kSize; ++i) ++counts[i][places[i]];
  }
  double chi_squared = 0, expected = double(kOrders) / kSize;
  for (auto& row : counts)
    for (double count : row) chi_squared += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_squared, 50);
}

TEST(Permutation, WorksForHugeSizesAtOnce) {
  Permutation permutation(int64_t(1) << 52, 1, 1);
  EXPECT_NE(permutation(0), permutation(1));
  EXPECT_LT(permutation(123456789), int64_t(1) << 52);
}

}  // namespace
}  // namespace tokamak
