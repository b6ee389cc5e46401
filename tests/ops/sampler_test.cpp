#include "ops/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "base/random.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

/// The slow twin: the whole distribution after temperature, top-k and top-p, in that order.
std::vector<double> distribution(std::span<const float> logits, const SamplingOptions& options) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0) order.resize(std::min(order.size(), size_t(options.top_k)));
  auto normalised = [&] {
    std::vector<double> p(logits.size(), 0.0);
    double sum = 0;
    for (size_t id : order) sum += p[id] = std::exp((double(logits[id]) - logits[order[0]]) / options.temperature);
    for (double& x : p) x /= sum;
    return p;
  };
  std::vector<double> p = normalised();
  double before = 0;
  size_t kept = 0;
  while (kept < order.size() && before < options.top_p) before += p[order[kept++]];
  order.resize(kept);
  if (double largest = p[order[0]]; options.min_p > 0)
    std::erase_if(order, [&](size_t id) { return p[id] < options.min_p * largest; });
  return normalised();
}

int32_t slow_sample(std::span<const float> logits, const SamplingOptions& options, float uniform) {
  std::vector<double> p = distribution(logits, options);
  double sum = 0;
  for (size_t id = 0; id < p.size(); ++id)
    if ((sum += p[id]) > uniform) return int32_t(id);
  return -1;
}

std::vector<float> random_logits(size_t vocab, uint64_t seed) {
  std::vector<float> logits(vocab);
  for (size_t i = 0; i < vocab; ++i) {
    auto words = philox4x32(seed, i);
    // Steps of 1/4, so that ties are common.
    logits[i] = words[0] % 16 == 0 ? -INFINITY : std::floor(32 * uniform_float(words[1])) / 4 - 4;
  }
  logits[0] = 0;
  return logits;
}

TEST(Sampler, AgreesWithItsSlowTwin) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    auto words = philox4x32(77, seed);
    std::vector<float> logits = random_logits(1 + words[0] % 60, seed);
    SamplingOptions options{.temperature = 0.3 + uniform_float(words[1]),
                            .top_k = words[2] % 3 ? int64_t(words[2] % 20) : 0,
                            .top_p = words[3] % 3 ? 0.05 + 0.9 * uniform_float(words[3]) : 1.0,
                            .min_p = words[1] % 2 ? 0.3 * uniform_float(words[0]) : 0};
    for (uint64_t draw = 0; draw < 10; ++draw) {
      float uniform = uniform_float(philox4x32(seed, draw, 5)[0]);
      ASSERT_EQ(sample(logits, options, uniform), slow_sample(logits, options, uniform))
          << "seed " << seed << " k " << options.top_k << " p " << options.top_p << " t " << options.temperature;
    }
  }
}

TEST(Sampler, ANumberBetweenTwoTokensTakesTheSecond) {
  std::vector<float> logits(4, 1.0f);
  for (int32_t id = 0; id < 4; ++id) EXPECT_EQ(sample(logits, {}, float(id) / 4), id);
}

TEST(Sampler, DrawsTheDistributionItPromises) {
  std::vector<float> logits = {0, 1, 2, 3, -INFINITY};
  SamplingOptions options{.temperature = 1.5};
  std::vector<double> expected = distribution(logits, options);
  std::vector<int> counts(logits.size());
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) ++counts[size_t(sample(logits, options, sampling_uniform(9, i)))];
  for (size_t id = 0; id < counts.size(); ++id) EXPECT_NEAR(double(counts[id]) / kDraws, expected[id], 0.01) << id;
  EXPECT_EQ(counts[4], 0);
}

TEST(Sampler, TemperatureZeroTakesTheLikeliestAndOfEqualsTheFirst) {
  std::vector<float> logits = {-1, 3, 2, 3};
  for (float uniform : {0.0f, 0.5f, 0.999f}) EXPECT_EQ(sample(logits, {.temperature = 0}, uniform), 1);
}

TEST(Sampler, TinyTemperaturesDoNotOverflow) {
  std::vector<float> logits = {-1000, 1000, 999};
  EXPECT_EQ(sample(logits, {.temperature = 1e-30}, 0.999f), 1);
}

TEST(Sampler, TopKKeepsExactlyKAndOfEqualsTheLowerIds) {
  std::vector<float> logits = {1, 2, 2, 2, 0};
  std::set<int32_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(sample(logits, {.top_k = 2}, float(i) / 200));
  EXPECT_EQ(seen, (std::set<int32_t>{1, 2}));
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.4f)};
  auto seen = [&](double p) {
    std::set<int32_t> ids;
    for (int i = 0; i < 200; ++i) ids.insert(sample(logits, {.top_p = p}, float(i) / 200));
    return ids;
  };
  EXPECT_EQ(seen(0.01), (std::set<int32_t>{1}));
  EXPECT_EQ(seen(0.49), (std::set<int32_t>{1}));
  EXPECT_EQ(seen(0.6), (std::set<int32_t>{1, 2}));
  EXPECT_EQ(seen(0.95), (std::set<int32_t>{0, 1, 2}));
}

TEST(Sampler, TopPIsReachedByExactlySoMuch) {
  std::vector<float> logits(8, 1.0f);  // of each an eighth, without rounding
  for (int kept = 1; kept < 8; ++kept) {
    std::set<int32_t> seen;
    for (int i = 0; i < 64; ++i) seen.insert(sample(logits, {.top_p = kept / 8.0}, float(i) / 64));
    EXPECT_EQ(int(seen.size()), kept);
    EXPECT_EQ(*seen.rbegin(), kept - 1) << "of equals the lower ids";
  }
}

// 0.5 of {0.5, 0.4} is more than 0.55 once top-k has thrown the third away: 0.5 / 0.9.
TEST(Sampler, TopPCountsWhatTopKLeft) {
  std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.4f)};
  for (int i = 0; i < 200; ++i) EXPECT_EQ(sample(logits, {.top_k = 2, .top_p = 0.55}, float(i) / 200), 1);
}

TEST(Sampler, MinPKeepsAShareOfTheLikeliest) {
  std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.4f)};
  auto seen = [&](SamplingOptions options) {
    std::set<int32_t> ids;
    for (int i = 0; i < 200; ++i) ids.insert(sample(logits, options, float(i) / 200));
    return ids;
  };
  EXPECT_EQ(seen({.min_p = 0.19}), (std::set<int32_t>{0, 1, 2})) << "0.1 of 0.5 is 0.2";
  EXPECT_EQ(seen({.min_p = 0.21}), (std::set<int32_t>{1, 2}));
  EXPECT_EQ(seen({.min_p = 0.81}), (std::set<int32_t>{1}));
  EXPECT_EQ(seen({.temperature = 2, .min_p = 0.4}), (std::set<int32_t>{0, 1, 2})) << "after the temperature";
}

// The slow twin asks of each token whether the text has it.
TEST(Sampler, ThePenaltyIsOnEachTokenOfTheTextOnce) {
  std::vector<int32_t> seen = {3, 0, 3, 7, -1, 99};
  for (double penalty : {0.5, 1.0, 1.3}) {
    std::vector<float> logits = {2, 1, 0, -3, 5, 6, -1, 8}, plain = logits;
    penalise(logits, seen, penalty);
    for (int32_t id = 0; id < 8; ++id) {
      bool is_seen = std::ranges::find(seen, id) != seen.end();
      double factor = !is_seen ? 1 : plain[size_t(id)] < 0 ? penalty : 1 / penalty;
      EXPECT_FLOAT_EQ(logits[size_t(id)], float(plain[size_t(id)] * factor)) << id << " " << penalty;
    }
  }
}

TEST(Sampler, LogProbabilitiesAreOfTheWholeDistribution) {
  std::vector<float> logits = {1, -2, 100, 99, -INFINITY};
  double sum = 0;
  for (int32_t id = 0; id < 5; ++id) {
    double p = std::exp(log_probability(logits, id));
    EXPECT_NEAR(p, distribution(logits, {})[size_t(id)], 1e-12);
    sum += p;
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(Sampler, TheHostIsNeededForWhatTheOpDoesNotKnow) {
  EXPECT_FALSE(needs_logits({.temperature = 0.5, .top_k = 3, .top_p = 0.5}));
  EXPECT_TRUE(needs_logits({.min_p = 0.1}));
  EXPECT_TRUE(needs_logits({.repetition_penalty = 1.1}));
  EXPECT_TRUE(needs_logits({.log_probabilities = true}));
}

TEST(Sampler, TheSameSeedGivesTheSameNumbers) {
  EXPECT_EQ(sampling_uniform(1, 7), sampling_uniform(1, 7));
  std::set<float> values;
  for (int64_t seed = 0; seed < 10; ++seed)
    for (int64_t number = 0; number < 100; ++number) values.insert(sampling_uniform(seed, number));
  EXPECT_GE(values.size(), 998u);  // 24 bits may meet
}

TEST(Sampler, HasNoTokenForABrokenModel) {
  for (double temperature : {0.0, 1.0})
    for (const std::vector<float>& logits : {std::vector<float>{1, NAN}, {INFINITY, 1}, {-INFINITY, -INFINITY}})
      EXPECT_EQ(sample(logits, {.temperature = temperature}, 0), kNoToken);
}

TEST(Sampler, MakesASeedOfItsWords) {
  for (int64_t seed : {int64_t(0), int64_t(1) << 31, int64_t(5) << 32 | 7, int64_t(-1)})
    EXPECT_EQ(sampling_seed(int32_t(uint64_t(seed)), int32_t(uint64_t(seed) >> 32)), seed);
}

TEST(SamplerErrors, OptionsOutsideTheirRange) {
  expect_user_error([] { validate({.temperature = -1}); }, {"temperature >= 0", "got -1"});
  expect_user_error([] { validate({.temperature = NAN}); }, {"temperature", "got nan"});
  expect_user_error([] { validate({.top_k = -2}); }, {"top_k >= 0", "got -2"});
  expect_user_error([] { validate({.top_p = 0}); }, {"0 < top_p <= 1", "got 0"});
  expect_user_error([] { validate({.top_p = 1.5}); }, {"got 1.5"});
  expect_user_error([] { validate({.min_p = -0.1}); }, {"0 <= min_p <= 1", "got -0.1"});
  expect_user_error([] { validate({.repetition_penalty = 0}); }, {"repetition_penalty > 0", "got 0"});
}

}  // namespace
}  // namespace tokamak
