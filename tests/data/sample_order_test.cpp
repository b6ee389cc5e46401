#include "data/sample_order.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "data/permutation.h"

namespace tokamak {
namespace {

std::vector<MixtureShare> shares_of(std::vector<int64_t> windows, std::vector<double> weights) {
  std::vector<int64_t> quotas = mixture_quotas(weights);
  std::vector<MixtureShare> shares;
  for (size_t i = 0; i < windows.size(); ++i) shares.push_back({windows[i], quotas[i]});
  return shares;
}

TEST(MixtureQuotas, AreLargestRemainders) {
  EXPECT_EQ(mixture_quotas(std::vector{3.0}), (std::vector<int64_t>{4096}));
  EXPECT_EQ(mixture_quotas(std::vector{0.7, 0.3}), (std::vector<int64_t>{2867, 1229}));
  EXPECT_EQ(mixture_quotas(std::vector{7.0, 3.0}), (std::vector<int64_t>{2867, 1229}));
  EXPECT_EQ(mixture_quotas(std::vector{1.0, 1.0, 1.0}), (std::vector<int64_t>{1366, 1365, 1365}));
}

TEST(MixtureQuotas, ALargerBlockGivesSmallSharesTheirDue) {
  EXPECT_EQ(mixture_block(std::vector{1.0, 4095.0}), 4096);
  std::vector<double> weights = {1.0, 29'999.0, 90'000.0};
  EXPECT_EQ(mixture_block(weights), 131'072);
  EXPECT_EQ(mixture_quotas(weights, 131'072), (std::vector<int64_t>{1, 32'767, 98'304}));
  EXPECT_EQ(mixture_block(std::vector{1.0, 1e12}), kMostMixtureBlock);
}

TEST(SampleOrder, TheBlockIsTheSumOfTheQuotas) {
  SampleOrder order(5, {{10, 1}, {70'000, 8191}});
  EXPECT_EQ(order.block_size(), 8192);
  for (int64_t block = 0; block < 3; ++block) {
    int64_t rare = 0;
    for (int64_t i = 0; i < 8192; ++i) rare += order.at(block * 8192 + i).dataset == 0;
    EXPECT_EQ(rare, 1);
    EXPECT_EQ(order.count((block + 1) * 8192, 0), block + 1);
  }
}

TEST(MixtureQuotas, ForgetNoDataset) {
  EXPECT_EQ(mixture_quotas(std::vector{1e9, 1e-9, 1.0}), (std::vector<int64_t>{4094, 1, 1}));
}

TEST(SampleOrder, OneDatasetGoesThroughItsPermutations) {
  SampleOrder order(7, {{10, kMixtureBlock}});
  for (int64_t sample = 0; sample < 50; ++sample) {
    Permutation permutation(10, 7, uint64_t(sample / 10));
    EXPECT_EQ(order.at(sample), (SamplePlace{0, sample / 10, permutation(sample % 10)}));
  }
}

// Every window of every dataset once per epoch, and each dataset's epochs one after the other.
TEST(SampleOrder, EachEpochOfEachDatasetHasEachWindowOnce) {
  std::vector<MixtureShare> shares = shares_of({11, 997, 5000}, {0.2, 0.3, 0.5});
  SampleOrder order(3, shares);
  std::vector<int64_t> last_epoch(3);
  std::map<std::pair<int64_t, int64_t>, std::set<int64_t>> seen;  // (dataset, epoch) -> windows
  for (int64_t sample = 0; sample < 5 * kMixtureBlock + 100; ++sample) {
    SamplePlace place = order.at(sample);
    ASSERT_TRUE(place.window >= 0 && place.window < shares[size_t(place.dataset)].windows);
    ASSERT_GE(place.epoch, last_epoch[size_t(place.dataset)]);
    last_epoch[size_t(place.dataset)] = place.epoch;
    ASSERT_TRUE((seen[{place.dataset, place.epoch}].insert(place.window).second)) << "sample " << sample;
  }
  for (auto& [key, windows] : seen) {
    auto [dataset, epoch] = key;
    if (epoch < last_epoch[size_t(dataset)]) {
      EXPECT_EQ(int64_t(windows.size()), shares[size_t(dataset)].windows);
    }
  }
  EXPECT_GT(last_epoch[0], 300);
  EXPECT_EQ(last_epoch[2], 2);
}

TEST(SampleOrder, EveryBlockHasItsQuotasInAnOrderOfItsOwn) {
  std::vector<MixtureShare> shares = shares_of({1000, 1000, 1000}, {0.6, 0.3, 0.1});
  SampleOrder order(1, shares);
  std::vector<std::vector<int64_t>> blocks;
  for (int64_t block : {int64_t(0), int64_t(1), int64_t(1) << 40}) {
    std::vector<int64_t> counts(3);
    auto& datasets = blocks.emplace_back();
    for (int64_t i = 0; i < kMixtureBlock; ++i) {
      datasets.push_back(order.at(block * kMixtureBlock + i).dataset);
      ++counts[size_t(datasets.back())];
    }
    for (size_t d = 0; d < 3; ++d) EXPECT_EQ(counts[d], shares[d].quota);
  }
  EXPECT_NE(blocks[0], blocks[1]);
  EXPECT_NE(blocks[1], blocks[2]);
}

// A shuffle, not runs: the datasets' samples are spread over the block, and over a batch.
TEST(SampleOrder, DatasetsAreMixedThroughoutABlock) {
  SampleOrder order(5, shares_of({1000, 1000}, {1, 1}));
  for (int64_t begin = 0; begin < kMixtureBlock; begin += 256) {
    int64_t first = order.count(begin + 256, 0) - order.count(begin, 0);
    EXPECT_NEAR(double(first), 128, 40) << "samples from " << begin;  // 5 standard deviations
  }
}

TEST(SampleOrder, EveryPlaceOfABlockIsShuffled) {
  SampleOrder order(5, shares_of({10'000, 10'000}, {1, 1}));
  for (int64_t place : {int64_t(0), kMixtureBlock / 2, kMixtureBlock - 1}) {
    std::set<int64_t> seen;
    for (int64_t block = 0; block < 40; ++block) seen.insert(order.at(block * kMixtureBlock + place).dataset);
    EXPECT_EQ(seen, (std::set<int64_t>{0, 1})) << "place " << place;
  }
}

TEST(SampleOrder, CountsAgreeWithCounting) {
  SampleOrder order(9, shares_of({50, 60, 70}, {5, 3, 1}));
  std::vector<int64_t> counts(3);
  for (int64_t sample = 0; sample < 3 * kMixtureBlock; ++sample) {
    if (sample % 97 == 0 || sample % kMixtureBlock == 0) {
      for (size_t d = 0; d < 3; ++d) ASSERT_EQ(order.count(sample, int64_t(d)), counts[d]) << sample;
    }
    SampleOrder::Turn turn = order.turn(sample);
    ASSERT_EQ(turn.number, counts[size_t(turn.dataset)]++);
  }
}

TEST(SampleOrder, AnyPlaceAtOnceAndInAnyOrder) {
  SampleOrder forward(2, shares_of({100, 300}, {1, 2})), jumping = forward;
  std::vector<SamplePlace> places;
  for (int64_t sample = 0; sample < 4 * kMixtureBlock; ++sample) places.push_back(forward.at(sample));
  for (int64_t i = 0; i < 1000; ++i) {
    int64_t sample = i * 7919 % (4 * kMixtureBlock);
    ASSERT_EQ(jumping.at(sample), places[size_t(sample)]);
  }
}

// 10^11 tokens and far more: nothing is a list, and nothing overflows.
TEST(SampleOrder, HoldsForHugeData) {
  int64_t huge = int64_t(1) << 40;
  SampleOrder order(1, shares_of({huge, 3 * huge}, {1, 3}));
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t sample = huge * 3; sample < huge * 3 + 10000; ++sample) {
    SamplePlace place = order.at(sample);
    EXPECT_TRUE(seen.insert({place.dataset, place.window}).second);
  }
  // 1 of 4 samples is of the first dataset: after 3 * 2^40 samples it is three quarters through its first epoch.
  EXPECT_EQ(order.at(huge * 3).epoch, 0);
  EXPECT_EQ(order.count(huge * 3, 0), huge * 3 / 4);
}

TEST(SampleOrder, DependsOnTheSeedAndTheDataset) {
  SampleOrder one(1, {{1000, kMixtureBlock}}), two(2, {{1000, kMixtureBlock}});
  int same = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) same += one.at(sample).window == two.at(sample).window;
  EXPECT_LT(same, 20);
  SampleOrder mixed(1, shares_of({1000, 1000}, {1, 1}));
  std::vector<std::vector<int64_t>> windows(2);
  for (int64_t sample = 0; sample < 2000; ++sample) {
    SamplePlace place = mixed.at(sample);
    windows[size_t(place.dataset)].push_back(place.window);
  }
  windows[0].resize(900), windows[1].resize(900);
  EXPECT_NE(windows[0], windows[1]);
}

TEST(SampleOrder, SequentialKeepsTheOrderOfTheData) {
  SampleOrder order(1, {{15, kMixtureBlock}}, true);
  for (int64_t sample = 0; sample < 40; ++sample) EXPECT_EQ(order.at(sample).window, sample % 15);
}

}  // namespace
}  // namespace tokamak
