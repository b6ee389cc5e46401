#include "backend/cpu/tiled_matmul.h"

#include "backend/cpu/simd.h"
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace tokamak::cpu {
namespace {

struct TiledMatmulTest : testing::Test {
  void SetUp() override {
    if (tile_units() == nullptr) GTEST_SKIP() << "this CPU has no products of bf16 in tiles";
  }
  ~TiledMatmulTest() override { set_num_threads(0); }
};

std::vector<Bf16> random_words(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<Bf16> x(static_cast<size_t>(count));
  for (Bf16& value : x) value = from_float<Bf16>(uniform(random));
  return x;
}

// C, elements of which lie as `output`; what no element of the product has keeps its bits, all ones.
std::vector<char> run(const TileUnits& units, const MatmulShape& s, DType output) {
  std::vector<Bf16> a = random_words(s.batch * s.stride_a, 1), b = random_words(s.batch * s.stride_b, 2);
  std::vector<char> c(size_t(s.batch * s.stride_c * dtype_bytes(output)), char(0xff));
  TiledMatmul matmul(units, s, output);
  std::vector<char> workspace(matmul.workspace_bytes(num_threads()), char(0xff));
  matmul.run(a.data(), b.data(), c.data(), workspace.data());
  return c;
}

float read(const std::vector<char>& c, DType output, int64_t i) {
  return output == DType::kF32 ? reinterpret_cast<const float*>(c.data())[i]
                               : to_float(reinterpret_cast<const Bf16*>(c.data())[i]);
}

void expect_agrees(const MatmulShape& shape, DType output) {
  MatmulShape s = shape.filled();
  std::vector<Bf16> a = random_words(s.batch * s.stride_a, 1), b = random_words(s.batch * s.stride_b, 2);
  auto at = [](const std::vector<Bf16>& x, int64_t i) { return double(to_float(x[size_t(i)])); };
  for (const TileUnits* units : {amx_units(), avx512_bf16_units()}) {
    if (units == nullptr) continue;
    std::vector<char> c = run(*units, s, output);
    for (int64_t t = 0; t < s.batch; ++t)
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.ldc; ++j) {
          int64_t place = t * s.stride_c + i * s.ldc + j;
          if (place >= (t + 1) * s.stride_c) continue;
          if (j >= s.n) {
            ASSERT_TRUE(std::isnan(read(c, output, place))) << "element " << i << " " << j << " is beyond the matrix";
            continue;
          }
          double sum = 0, size = 0;
          for (int64_t k = 0; k < s.k; ++k) {
            double term = at(a, t * s.stride_a + (s.trans_a ? k * s.lda + i : i * s.lda + k)) *
                          at(b, t * s.stride_b + (s.trans_b ? j * s.ldb + k : k * s.ldb + j));
            sum += term, size += std::abs(term);
          }
          // A rounding of f32 for each term, which grows with the root of their number, and one of the result.
          double bound =
              6e-8 * size * std::sqrt(double(s.k)) + (output == DType::kF32 ? 0 : std::abs(sum) / 256) + 1e-6;
          ASSERT_NEAR(read(c, output, place), sum, bound)
              << units->name << " " << i << " " << j << " of (" << s.m << ", " << s.n << ", " << s.k << ") trans "
              << s.trans_a << s.trans_b;
        }
  }
}

TEST_F(TiledMatmulTest, AgreesInEveryLayout) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{32, 32, 32}, {1, 1, 1}, {70, 45, 99}, {150, 64, 301}})
    for (bool trans_a : {false, true})
      for (bool trans_b : {false, true})
        for (DType output : {DType::kF32, DType::kBF16})
          expect_agrees({.m = m, .n = n, .k = k, .trans_a = trans_a, .trans_b = trans_b}, output);
}

TEST_F(TiledMatmulTest, AgreesInBatchesOfSlices) {
  expect_agrees({.batch = 3, .m = 40, .n = 50, .k = 70, .lda = 73, .ldb = 53, .ldc = 51}, DType::kBF16);
  expect_agrees(
      {.batch = 2, .m = 40, .n = 50, .k = 70, .trans_a = true, .trans_b = true, .lda = 41, .ldb = 74, .ldc = 60},
      DType::kF32);
}

// More than one block, and more than one piece, of each dimension in turn.
TEST_F(TiledMatmulTest, AgreesInBlocksAndPieces) {
  for (DType output : {DType::kF32, DType::kBF16}) {
    expect_agrees({.m = 4230, .n = 33, .k = 40, .trans_a = true}, output);
    expect_agrees({.m = 33, .n = 4230, .k = 40, .trans_b = true}, output);
    expect_agrees({.m = 33, .n = 35, .k = 8300}, output);
    expect_agrees({.m = 600, .n = 420, .k = 70}, output);
    expect_agrees({.m = 550, .n = 33, .k = 4100}, output);
  }
}

TEST_F(TiledMatmulTest, BitsDoNotDependOnTheThreads) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{700, 450, 300}, {200, 410, 4200}}) {
    MatmulShape s = MatmulShape{.m = m, .n = n, .k = k}.filled();
    for (const TileUnits* units : {amx_units(), avx512_bf16_units()}) {
      if (units == nullptr) continue;
      set_num_threads(1);
      std::vector<char> one = run(*units, s, DType::kF32);
      for (int threads : {2, 3}) {
        set_num_threads(threads);
        EXPECT_EQ(one, run(*units, s, DType::kF32)) << threads;
      }
    }
  }
}

TEST_F(TiledMatmulTest, IsForLargeProductsOfBf16) {
  MatmulShape large = MatmulShape{.m = 1024, .n = 768, .k = 768}.filled();
  MatmulOptions bf16{.a = DType::kBF16, .b = DType::kBF16};
  EXPECT_TRUE(TiledMatmul::is_for(large, bf16));
  EXPECT_FALSE(TiledMatmul::is_for(large, {}));
  EXPECT_FALSE(TiledMatmul::is_for(MatmulShape{.m = 4, .n = 50304, .k = 768}.filled(), bf16));
}

}  // namespace
}  // namespace tokamak::cpu
