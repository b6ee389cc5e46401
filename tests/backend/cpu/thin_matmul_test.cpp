#include "backend/cpu/thin_matmul.h"

#include "backend/cpu/convert.h"
#include "backend/cpu/simd.h"
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tokamak::cpu {
namespace {

struct Values {
  std::vector<float> floats;  // as the type holds them
  std::vector<char> bytes;
};

Values random_values(int64_t count, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Values x{std::vector<float>(size_t(count)), std::vector<char>(size_t(count * dtype_bytes(dtype)))};
  for (float& value : x.floats) value = uniform(random);
  store(dtype, x.floats.data(), count, x.bytes.data(), 0);
  load(dtype, x.bytes.data(), 0, count, x.floats.data());
  return x;
}

std::vector<float> run(const MatmulShape& s, const MatmulOptions& o, const Values& a, const Values& b) {
  std::vector<char> c(size_t(s.m * s.n * dtype_bytes(o.output)));
  thin_matmul(s, o, a.bytes.data(), b.bytes.data(), c.data());
  std::vector<float> y(size_t(s.m * s.n));
  load(o.output, c.data(), 0, s.m * s.n, y.data());
  return y;
}

double expected(const MatmulShape& s, const Values& a, const Values& b, int64_t m, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < s.k; ++k)
    sum += double(a.floats[size_t(m * s.k + k)]) * b.floats[size_t(s.trans_b ? n * s.k + k : k * s.n + n)];
  return sum;
}

// Sizes that are no multiples of a vector, of a thread's columns or of the rows read together among them.
TEST(ThinMatmul, MultipliesAsTheFormulaSays) {
  for (auto [n, k] : {std::pair<int64_t, int64_t>{64, 64}, {2500, 70}, {33, 129}, {1, 5}, {130, 1}})
    for (int64_t m : {1, 2, 3, 8})
      for (bool trans_b : {false, true})
        for (auto [in, out] :
             {std::pair{DType::kF32, DType::kF32}, {DType::kBF16, DType::kBF16}, {DType::kBF16, DType::kF32}}) {
          MatmulShape s{.m = m, .n = n, .k = k, .trans_b = trans_b};
          MatmulOptions o{.a = in, .b = in, .output = out};
          ASSERT_TRUE(is_thin(s));
          Values a = random_values(m * k, in, 1), b = random_values(n * k, in, 2);
          std::vector<float> y = run(s, o, a, b);
          double tolerance = out == DType::kBF16 ? 1e-2 : 1e-5;
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double want = expected(s, a, b, i, j);
              ASSERT_NEAR(y[size_t(i * n + j)], want, tolerance * std::max(1.0, std::fabs(want)))
                  << m << ' ' << n << ' ' << k << ' ' << trans_b << ", row " << i << " column " << j;
            }
        }
}

TEST(ThinMatmul, IsForFewRowsOfOneMatrix) {
  EXPECT_FALSE(is_thin({.m = 9, .n = 8, .k = 8}));
  EXPECT_FALSE(is_thin({.batch = 2, .m = 1, .n = 8, .k = 8}));
  EXPECT_FALSE(is_thin({.m = 1, .n = 8, .k = 8, .trans_a = true}));
}

// A row has the same bits alone and among others, at any number of threads.
TEST(ThinMatmul, RowsDependOnNothingElse) {
  for (bool trans_b : {false, true}) {
    MatmulShape many{.m = 8, .n = 300, .k = 100, .trans_b = trans_b}, one = many;
    one.m = 1;
    Values a = random_values(800, DType::kF32, 1), b = random_values(30000, DType::kF32, 2);
    std::vector<float> together = run(many, {}, a, b);
    for (int threads : {1, 3}) {
      set_num_threads(threads);
      std::vector<float> alone = run(one, {}, a, b);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin())) << threads;
    }
    set_num_threads(0);
  }
}

}  // namespace
}  // namespace tokamak::cpu
