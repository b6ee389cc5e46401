#include "backend/cpu/bf16_tiles.h"

#include "backend/cpu/simd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tokamak::cpu {
namespace {

constexpr const char* kNone = "this CPU has no products of bf16 in tiles";

using Words = std::vector<uint16_t>;
using Floats = std::vector<float>;

struct Bf16Tiles : testing::Test {
  void SetUp() override {
    if (tile_units() == nullptr) GTEST_SKIP() << kNone;
  }
  std::mt19937 random{1};

  Words words(int64_t count) {
    std::normal_distribution<float> normal;
    Words x(static_cast<size_t>(count));
    for (uint16_t& w : x) w = uint16_t(from_float<Bf16>(normal(random)));
    return x;
  }
  Floats floats(int64_t count, float scale = 1) {
    std::normal_distribution<float> normal;
    Floats x(static_cast<size_t>(count));
    for (float& f : x) f = scale * normal(random);
    return x;
  }
};

double value(const Words& x, int64_t at) { return to_float(Bf16(x[size_t(at)])); }

// Where element (i, j) of a matrix stands in its tiles, which lie row by row of tiles.
int64_t left_place(int64_t i, int64_t k, int64_t depth) {
  return (i / 16 * (depth / 32) + k / 32) * 512 + i % 16 * 32 + k % 32;
}
int64_t right_place(int64_t k, int64_t j, int64_t columns) {
  return (k / 32 * (columns / 16) + j / 16) * 512 + k % 32 / 2 * 32 + j % 16 * 2 + k % 2;
}
int64_t sum_place(int64_t i, int64_t j, int64_t columns) {
  return (i / 16 * (columns / 16) + j / 16) * 256 + i % 16 * 16 + j % 16;
}

TEST_F(Bf16Tiles, ProductsAreThoseOfTheMatrices) {
  for (const TileUnits* units : {amx_units(), avx512_bf16_units()}) {
    if (units == nullptr) continue;
    for (auto [m, n, k] : {std::array<int64_t, 3>{32, 32, 32}, {64, 32, 96}, {32, 96, 64}}) {
      Words a = words(m * k), b = words(k * n);
      Floats c = floats(m * n), before = c;
      for (bool accumulate : {true, false}) {
        units->enter();
        units->multiply(
            {m, n, k, {c.data(), n * 16, 256}, {a.data(), k * 16, 512}, {b.data(), n * 32, 512}, accumulate});
        units->leave();
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            double sum = accumulate ? double(before[size_t(sum_place(i, j, n))]) : 0, size = std::abs(sum);
            for (int64_t p = 0; p < k; ++p) {
              double term = value(a, left_place(i, p, k)) * value(b, right_place(p, j, n));
              sum += term, size += std::abs(term);
            }
            // A rounding of f32 for each term.
            ASSERT_NEAR(c[size_t(sum_place(i, j, n))], sum, size * double(k) * 6e-8)
                << units->name << " " << i << " " << j;
          }
      }
    }
  }
}

TEST_F(Bf16Tiles, RowsBecomeTiles) {
  Words rows = words(32 * 40), tile(512), turned(512);
  pair_rows(rows.data(), 40, tile.data());
  for (int64_t r = 0; r < 32; ++r)
    for (int64_t d = 0; d < 16; ++d)
      ASSERT_EQ(tile[size_t(right_place(r, d, 16))], rows[size_t(r * 40 + d)]) << r << " " << d;
  transpose_words(reinterpret_cast<const uint32_t*>(tile.data()), 16, reinterpret_cast<uint32_t*>(turned.data()));
  for (int64_t r = 0; r < 32; ++r)
    for (int64_t d = 0; d < 16; ++d)
      ASSERT_EQ(turned[size_t(left_place(d, r, 32))], rows[size_t(r * 40 + d)]) << r << " " << d;
}

TEST_F(Bf16Tiles, TilesBecomeRows) {
  Floats tiles = floats(2 * 256), factors = floats(16);
  Words rows(16 * 40), columns(16 * 40);
  round_rows(tiles.data(), 256, 32, 0.3f, rows.data(), 40);
  round_columns(tiles.data(), 256, 32, factors.data(), columns.data(), 40);
  for (int64_t r = 0; r < 16; ++r)
    for (int64_t d = 0; d < 32; ++d) {
      float row = tiles[size_t(sum_place(r, d, 32))], column = tiles[size_t(d / 16 * 256 + d % 16 * 16 + r)];
      EXPECT_EQ(rows[size_t(r * 40 + d)], uint16_t(from_float<Bf16>(row * 0.3f)));
      EXPECT_EQ(columns[size_t(r * 40 + d)], uint16_t(from_float<Bf16>(column * factors[size_t(r)])));
    }
}

TEST_F(Bf16Tiles, RowsAreMultipliedWithRows) {
  Words a = words(3 * 96), b = words(3 * 96);
  Floats sums(3);
  multiply_rows(a.data(), b.data(), 3, 96, sums.data());
  for (int64_t r = 0; r < 3; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < 96; ++i) sum += value(a, r * 96 + i) * value(b, r * 96 + i);
    EXPECT_NEAR(sums[size_t(r)], sum, 1e-5);
  }
}

// Ranges of keys: all, none, some that begin or end at odd places, and one key.
TEST_F(Bf16Tiles, SoftmaxOfWhatEachQuerySees) {
  constexpr int64_t kKeys = 64, kSums = 32;
  Floats scores = floats(kKeys * 32, 30), dropout = floats(kKeys * 32), sums = floats(kSums * 32), before = sums;
  Floats top(32, -std::numeric_limits<float>::infinity()), total(32, 0.0f);
  std::vector<int32_t> begin(32), end(32);
  for (int32_t q = 0; q < 32; ++q) begin[size_t(q)] = q % 5 - 1, end[size_t(q)] = q == 7 ? -1 : q == 8 ? 4 : 3 * q + 4;
  top[3] = 10, total[3] = 2;
  Words probabilities(kKeys * 32);
  add_softmax({scores.data(), kKeys, 0.1f, begin.data(), end.data(), dropout.data(), probabilities.data(), top.data(),
               total.data(), sums.data(), kSums});
  for (int64_t q = 0; q < 32; ++q) {
    auto score = [&](int64_t j) { return double(scores[size_t(q / 16 * kKeys * 16 + j * 16 + q % 16)]); };
    auto sees = [&](int64_t j) { return j >= begin[size_t(q)] && j < end[size_t(q)]; };
    double greatest = q == 3 ? 10 : -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < kKeys; ++j) greatest = sees(j) ? std::max(greatest, score(j)) : greatest;
    ASSERT_EQ(double(top[size_t(q)]), greatest) << q;
    double shrink = q == 3 ? std::exp2(0.1 * (10 - greatest)) : 0;
    for (int64_t j = 0; j < kKeys; ++j) {
      double p = sees(j) ? std::exp2(double(0.1f) * (score(j) - greatest)) : 0;
      sum += p;
      p *= double(dropout[size_t(q / 16 * kKeys * 16 + j * 16 + q % 16)]);
      double stored = value(probabilities, q / 16 * kKeys * 16 + j / 2 * 32 + q % 16 * 2 + j % 2);
      ASSERT_NEAR(stored, p, std::abs(p) / 200 + 1e-30) << q << " " << j;
    }
    EXPECT_NEAR(total[size_t(q)], sum + 2 * shrink, 1e-5 * (sum + 1)) << q;
    for (int64_t i = 0; i < kSums && sum > 0; ++i) {
      auto at = size_t(q / 16 * kSums * 16 + i * 16 + q % 16);
      EXPECT_NEAR(sums[at], shrink * double(before[at]), 1e-6) << q << " " << i;
    }
  }
}

}  // namespace
}  // namespace tokamak::cpu
