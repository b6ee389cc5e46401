#include "base/dropout_random.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tokamak::test {
namespace {

// The known answers that come with Random123, the authors' library.
TEST(Philox, GivesTheKnownAnswers) {
  using Four = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32<7>(0, 0, 0), (Four{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox4x32<10>(0, 0, 0), (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  using Words = std::array<uint32_t, 2>;
  EXPECT_EQ(philox2x32(0, 0, 0), (Words{0x257a3673, 0xcd26be2a}));
  EXPECT_EQ(philox2x32(~0u, ~0u, ~0u), (Words{0xab302c4d, 0x3dc9d239}));
  EXPECT_EQ(philox2x32(0x13198a2e, 0x243f6a88, 0x85a308d3), (Words{0xbedbbe6b, 0xe4c770b3}));
}

TEST(MatrixRandom, DrawsEightElementsAtOnce) {
  MatrixRandom random(5, 3, 50);
  for (int64_t i : {0, 7, 16, 35})
    for (int64_t j : {0, 2, 16, 38}) {
      std::array<uint32_t, 8> numbers = random.draw(2, i, j);
      for (int64_t odd : {0, 1}) {
        EXPECT_EQ(numbers[size_t(4 * odd)], random(2, i, j + odd));
        EXPECT_EQ(numbers[size_t(4 * odd + 1)], random(2, i, j + odd + 8));
        EXPECT_EQ(numbers[size_t(4 * odd + 2)], random(2, i + 8, j + odd));
        EXPECT_EQ(numbers[size_t(4 * odd + 3)], random(2, i + 8, j + odd + 8));
      }
    }
}

// 24,000 draws of 64 bits have as many different ones as chance would give, and the streams, keys and matrices do not
// share them.
TEST(MatrixRandom, NumbersAreOfTheirElements) {
  std::set<std::array<uint32_t, 8>> draws;
  int count = 0;
  for (uint64_t key : {0, 1})
    for (uint64_t stream : {0, 1})
      for (int64_t matrix : {0, 1, 2})
        for (int64_t i = 0; i < 100; i += i % 16 == 7 ? 9 : 1)
          for (int64_t j = 0; j < 75; j += j % 16 == 6 ? 10 : 2, ++count)
            draws.insert(MatrixRandom(key, stream, 75).draw(matrix, i, j));
  EXPECT_EQ(int(draws.size()), count);
}

constexpr int kDraws = 1 << 18;

/// Draws of distinct places.
std::vector<std::array<uint32_t, 8>> many_draws() {
  MatrixRandom random(11, 7, 2048);
  std::vector<std::array<uint32_t, 8>> draws;
  for (int64_t i = 0; int(draws.size()) < kDraws; i += i % 16 == 7 ? 9 : 1)
    for (int64_t j = 0; j < 2048; j += j % 16 == 6 ? 10 : 2) draws.push_back(random.draw(1, i, j));
  return draws;
}

// Each of the 8 places of a draw drops its share, and any two of them their shares' product: within 5 deviations.
TEST(MatrixRandom, DropsWithTheProbability) {
  constexpr double p = 0.3;
  uint32_t threshold = dropout_threshold(p);
  double dropped[8] = {}, both[8][8] = {};
  std::vector<std::array<uint32_t, 8>> draws = many_draws();
  for (const auto& numbers : draws)
    for (size_t a = 0; a < 8; ++a) {
      dropped[a] += numbers[a] < threshold;
      for (size_t b = 0; b < a; ++b) both[a][b] += numbers[a] < threshold && numbers[b] < threshold;
    }
  for (size_t a = 0; a < 8; ++a) {
    EXPECT_NEAR(dropped[a] / double(draws.size()), p, 0.0045) << a;
    for (size_t b = 0; b < a; ++b) EXPECT_NEAR(both[a][b] / double(draws.size()), p * p, 0.0028) << a << " and " << b;
  }
}

// Of numbers with the threshold's high 7 bits, the low 8 drop their share, whatever else of the draw is dropped.
TEST(MatrixRandom, LowBitsAreIndependentOfHighBits) {
  constexpr uint32_t kHigh = 25, kLow = 32, kThreshold = kHigh << 8 | kLow;
  double near[8] = {}, dropped[8] = {}, both[8][8] = {};
  for (const auto& numbers : many_draws())
    for (size_t a = 0; a < 8; ++a) {
      if (numbers[a] >> 8 != kHigh) continue;
      ++near[a];
      dropped[a] += numbers[a] < kThreshold;
      for (size_t b = 0; b < 8; ++b) both[a][b] += numbers[a] < kThreshold && numbers[b] < kThreshold;
    }
  constexpr double share = kLow / 256.0, p = kThreshold / double(kDropoutRange);
  for (size_t a = 0; a < 8; ++a) {
    EXPECT_NEAR(near[a] / kDraws, 1.0 / 128, 0.00086) << a;
    EXPECT_NEAR(dropped[a] / near[a], share, 0.037) << a;
    for (size_t b = 0; b < 8; ++b)
      if (b != a) EXPECT_NEAR(both[a][b] / near[a], share * p, 0.017) << a << " and " << b;
  }
}

TEST(DropoutNumbers, AreAllDrawnAlike) {
  constexpr int kBlocks = 4000;
  uint32_t threshold = dropout_threshold(0.1);
  std::array<int, 8> dropped = {};
  for (uint64_t block = 0; block < kBlocks; ++block) {
    auto numbers = dropout_numbers(3, block, 5);
    for (size_t i = 0; i < 8; ++i) dropped[i] += numbers[i] < threshold;
  }
  for (int d : dropped) EXPECT_NEAR(double(d) / kBlocks, 0.1, 0.02);
}

TEST(DropoutNumbers, KeepTheMean) {
  for (double p : {0.0, 1e-6, 0.1, 0.5, 0.99999}) {
    double kept = 1 - double(dropout_threshold(p)) / kDropoutRange;
    EXPECT_NEAR(kept * dropout_factor(p), 1, 1e-12) << p;
    EXPECT_NEAR(kept, 1 - p, std::ldexp(1.0, -15)) << p;
  }
}

}  // namespace
}  // namespace tokamak::test
