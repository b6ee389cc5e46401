#include "base/dropout_random.h"

#include <gtest/gtest.h>

#include <set>

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

TEST(MatrixRandom, DrawsFourElementsAtOnce) {
  MatrixRandom random(5, 3, 50);
  for (int64_t i : {0, 7, 16, 35})
    for (int64_t j : {0, 3, 17, 39}) {
      std::array<uint32_t, 4> numbers = random.draw(2, i, j);
      EXPECT_EQ(numbers[0], random(2, i, j));
      EXPECT_EQ(numbers[1], random(2, i, j + 8));
      EXPECT_EQ(numbers[2], random(2, i + 8, j));
      EXPECT_EQ(numbers[3], random(2, i + 8, j + 8));
    }
}

// Drawn as four of 2^15 numbers each, 48,000 elements have as many different ones as chance would give, and the
// streams, keys and matrices do not share them.
TEST(MatrixRandom, NumbersAreOfTheirElements) {
  std::set<std::array<uint32_t, 4>> draws;
  int count = 0;
  for (uint64_t key : {0, 1})
    for (uint64_t stream : {0, 1})
      for (int64_t matrix : {0, 1, 2})
        for (int64_t i = 0; i < 100; i += i % 16 == 7 ? 9 : 1)
          for (int64_t j = 0; j < 75; j += j % 16 == 7 ? 9 : 1, ++count)
            draws.insert(MatrixRandom(key, stream, 75).draw(matrix, i, j));
  EXPECT_EQ(int(draws.size()), count);
}

// Each of the 4 places of a draw drops its share: the mean of 6,400 such has a deviation of 0.0025.
TEST(MatrixRandom, DropsWithTheProbability) {
  constexpr double p = 0.3;
  uint32_t threshold = dropout_threshold(p);
  double dropped[4] = {}, pairs = 0;
  for (int64_t i = 0; i < 160; ++i)
    for (int64_t j = 0; j < 160; ++j) {
      MatrixRandom random(11, 7, 160);
      bool now = random(1, i, j) < threshold, next = random(1, i, (j + 1) % 160) < threshold;
      dropped[(i & 8) / 4 + (j & 8) / 8] += now;
      pairs += now && next;
    }
  for (double d : dropped) EXPECT_NEAR(d / 6400, p, 0.025);
  EXPECT_NEAR(pairs / 25600, p * p, 0.02) << "neighbours are independent";
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
