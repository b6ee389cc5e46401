#include "backend/cpu/matmul.h"

#include "backend/cpu/simd.h"
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tokamak::cpu {
namespace {

// The slow obvious twin, in double.
std::vector<double> reference(const MatmulShape& shape, const std::vector<float>& a, const std::vector<float>& b,
                              const std::vector<float>& c) {
  MatmulShape s = shape.filled();
  std::vector<double> result(c.begin(), c.end());
  std::vector<double> row(size_t(s.n));
  for (int64_t t = 0; t < s.batch; ++t)
    for (int64_t i = 0; i < s.m; ++i) {
      std::fill(row.begin(), row.end(), 0);
      for (int64_t k = 0; k < s.k; ++k) {
        double x = double(a[size_t(t * s.stride_a + (s.trans_a ? k * s.lda + i : i * s.lda + k))]);
        for (int64_t j = 0; j < s.n; ++j)
          row[size_t(j)] += x * double(b[size_t(t * s.stride_b + (s.trans_b ? j * s.ldb + k : k * s.ldb + j))]);
      }
      std::copy(row.begin(), row.end(), result.begin() + t * s.stride_c + i * s.ldc);
    }
  return result;
}

struct Operand {
  std::vector<float> values;  // as rounded to the type
  std::vector<char> bytes;
};

Operand random_operand(int64_t count, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Operand x;
  for (int64_t i = 0; i < count; ++i) {
    float value = uniform(random);
    Bf16 low = from_float<Bf16>(value);
    const char* from = dtype == DType::kF32 ? reinterpret_cast<char*>(&value) : reinterpret_cast<char*>(&low);
    x.bytes.insert(x.bytes.end(), from, from + dtype_bytes(dtype));
    x.values.push_back(dtype == DType::kF32 ? value : to_float(low));
  }
  return x;
}

float read(const Operand& x, DType dtype, size_t i) {
  return dtype == DType::kF32 ? reinterpret_cast<const float*>(x.bytes.data())[i]
                              : to_float(reinterpret_cast<const Bf16*>(x.bytes.data())[i]);
}

void expect_agrees(const MatmulShape& shape, const MatmulOptions& o) {
  MatmulShape s = shape.filled();
  Operand a = random_operand(s.batch * s.stride_a, o.a, 1), b = random_operand(s.batch * s.stride_b, o.b, 2);
  Operand c = random_operand(s.batch * s.stride_c, o.output, 3);
  auto expected = reference(shape, a.values, b.values, c.values);
  Matmul matmul(shape, o);
  std::vector<std::max_align_t> workspace(matmul.workspace_bytes() / sizeof(std::max_align_t) + 8);
  void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
  matmul.run(a.bytes.data(), b.bytes.data(), c.bytes.data(), aligned);
  // Partial sums of k random terms grow as sqrt(k), and so does the number of standard roundings: together as k.
  double sums = 2e-7 * double(s.k + 30);
  double rounding = o.output == DType::kF32 ? 1e-6 : 4e-3;
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(read(c, o.output, i), expected[i], sums + rounding * (1 + std::abs(expected[i])))
        << "element " << i << " of (" << s.m << ", " << s.n << ", " << s.k << ") trans " << s.trans_a << s.trans_b
        << ", " << matmul.implementation();
}

TEST(Matmul, AgreesInEveryLayout) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {1, 70, 33}, {5, 1, 17}, {64, 48, 32}, {37, 129, 65}})
    for (bool trans_a : {false, true})
      for (bool trans_b : {false, true})
        for (DType input : {DType::kF32, DType::kBF16})
          for (DType output : {DType::kF32, DType::kBF16})
            if (input == DType::kBF16 || output == DType::kF32)
              expect_agrees({.m = m, .n = n, .k = k, .trans_a = trans_a, .trans_b = trans_b},
                            {.a = input, .b = input, .output = output});
}

TEST(Matmul, AgreesOnOperandsOfTwoTypesWhereItKnowsThem) {
  for (bool wide_a : {false, true}) {
    MatmulOptions options{.a = wide_a ? DType::kF32 : DType::kBF16, .b = wide_a ? DType::kBF16 : DType::kF32};
    if (Matmul::supports(options)) expect_agrees({.batch = 2, .m = 33, .n = 50, .k = 40, .trans_a = true}, options);
  }
  EXPECT_FALSE(Matmul::supports({.a = DType::kF16, .b = DType::kF16}));
}

TEST(Matmul, AgreesInBatches) {
  for (DType input : {DType::kF32, DType::kBF16})
    expect_agrees({.batch = 3, .m = 33, .n = 50, .k = 40, .trans_b = true}, {.a = input, .b = input, .output = input});
}

TEST(Matmul, AgreesWhenItGoesInPieces) {
  for (bool trans_a : {false, true})
    expect_agrees({.m = 260, .n = 801, .k = 1601, .trans_a = trans_a, .ldb = 805, .ldc = 803}, {});
}

TEST(Matmul, AgreesInBf16WhenItGoesInPieces) {
  MatmulOptions bf16{.a = DType::kBF16, .b = DType::kBF16, .output = DType::kBF16};
  expect_agrees({.m = 1600, .n = 801, .k = 100, .trans_a = true, .lda = 1601, .ldb = 805, .ldc = 803}, bf16);
  for (bool trans_b : {false, true}) expect_agrees({.m = 260, .n = 401, .k = 8195, .trans_b = trans_b}, bf16);
}

TEST(Matmul, BatchOfSlicesOfAWiderTensor) {
  // Heads of a packed projection: 3 heads of 16 columns, rows of 144; the rest of C keeps its values.
  int64_t rows = 20, width = 3 * 48;
  MatmulShape shape{.batch = 3,
                    .m = rows,
                    .n = rows,
                    .k = 16,
                    .trans_b = true,
                    .lda = width,
                    .ldb = width,
                    .ldc = 3 * rows,
                    .stride_a = 16,
                    .stride_b = 16,
                    .stride_c = rows};
  MatmulShape s = shape.filled();
  Operand x = random_operand(rows * width, DType::kF32, 1), c = random_operand(rows * 3 * rows, DType::kF32, 2);
  auto expected = reference(s, x.values, x.values, c.values);
  Matmul matmul(shape);
  std::vector<char> workspace(matmul.workspace_bytes() + 64);
  matmul.run(x.values.data(), x.values.data(), c.values.data(), workspace.data());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(c.values[i], expected[i], 1e-5) << i;
}

TEST(Matmul, GivesTheSameBitsEveryTime) {
  for (bool trans_a : {false, true}) {
    MatmulShape shape{.m = 96, .n = 96, .k = 3000, .trans_a = trans_a};
    Operand a = random_operand(96 * 3000, DType::kF32, 1), b = random_operand(96 * 3000, DType::kF32, 2);
    Matmul matmul(shape);
    std::vector<float> first(96 * 96), again(96 * 96);
    std::vector<char> workspace(matmul.workspace_bytes() + 64);
    matmul.run(a.values.data(), b.values.data(), first.data(), workspace.data());
    for (int i = 0; i < 10; ++i) {
      matmul.run(a.values.data(), b.values.data(), again.data(), workspace.data());
      ASSERT_EQ(first, again);
    }
  }
}

// Ranks have fewer threads than a run alone; with another library than oneDNN that is not promised.
TEST(Matmul, GivesTheSameBitsOnAnyNumberOfThreads) {
  int threads = num_threads();
  for (int64_t batch : {1, 3})
    for (auto [m, n, k] : {std::array<int64_t, 3>{32, 32, 301}, {301, 96, 1024}, {400, 800, 70}})
      for (bool trans_a : {false, true}) {
        MatmulShape shape{.batch = batch, .m = m, .n = n, .k = k, .trans_a = trans_a, .trans_b = n == 96};
        Operand a = random_operand(batch * m * k, DType::kF32, 1), b = random_operand(batch * k * n, DType::kF32, 2);
        std::vector<float> expected(size_t(batch * m * n)), c(expected.size());
        for (int count : {1, 2, 4}) {
          set_num_threads(count);
          Matmul matmul(shape);
          if (!matmul.implementation().starts_with("onednn")) GTEST_SKIP() << matmul.implementation();
          std::vector<char> workspace(matmul.workspace_bytes() + 64);
          matmul.run(a.values.data(), b.values.data(), (count == 1 ? expected : c).data(), workspace.data());
          if (count > 1) EXPECT_EQ(c, expected) << m << " " << n << " " << k << ", " << matmul.implementation();
        }
      }
  set_num_threads(threads);
}

}  // namespace
}  // namespace tokamak::cpu
