#include "backend/cpu/thin_matmul.h"

#include "backend/cpu/convert.h"
#include "backend/cpu/matmul/elements.h"
#include "backend/cpu/simd.h"
#include "base/parallel.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tokamak::cpu {
namespace {

constexpr int64_t kMostRows = 8;
constexpr int64_t kColumnGrain = 64;   // columns of a thread: whole cache lines
constexpr int64_t kColumnTile = 1024;  // whose sums stay in the L1 cache

Vec load_elements(const float* p) { return load(p); }
Vec load_elements(const Bf16* p) { return load_bf16(p); }

struct Product {
  const MatmulShape& s;
  const MatmulOptions& o;
  const float* a;  // (m, k)
  const void* b;
  void* c;

  void write(int64_t m, const float* sums, int64_t begin, int64_t end) const {
    for (int64_t j = begin; j < end; ++j) write_from_float(c, o.output, m * s.n + j, sums[j - begin]);
  }
};

// Asks for what is at `next` when `at` is the first vector of a cache line: rows that are read in turns are too short
// for the processor to see far enough ahead by itself.
template <typename T>
void fetch_line(const T* next, int64_t at) {
  constexpr int64_t kLine = 64 / int64_t(sizeof(T));
  if (at % kLine == 0) __builtin_prefetch(next + at);
}

// B as (n, k): the columns [begin, end) of C are sums along rows of B, kTogether of which are read side by side.
template <int kRows, typename T>
void sum_along_rows(const Product& p, int64_t begin, int64_t end) {
  constexpr int64_t kTogether = kRows > 2 ? 2 : 4;
  int64_t k = p.s.k, whole = k / kLanes * kLanes;
  const T* b = static_cast<const T*>(p.b);
  for (int64_t j = begin; j < end; j += kTogether) {
    const T *rows[kTogether], *next[kTogether];
    for (int64_t r = 0; r < kTogether; ++r) {
      rows[r] = b + std::min(j + r, p.s.n - 1) * k;
      next[r] = b + std::min(j + kTogether + r, p.s.n - 1) * k;
    }
    Vec sums[kRows][kTogether] = {};
    for (int64_t i = 0; i < whole; i += kLanes) {
      Vec w[kTogether];
      for (int64_t r = 0; r < kTogether; ++r) {
        fetch_line(next[r], i);
        w[r] = load_elements(rows[r] + i);
      }
      for (int64_t m = 0; m < kRows; ++m) {
        Vec x = load(p.a + m * k + i);
        for (int64_t r = 0; r < kTogether; ++r) sums[m][r] += x * w[r];
      }
    }
    for (int64_t m = 0; m < kRows; ++m) {
      float y[kTogether];
      for (int64_t r = 0; r < kTogether; ++r) {
        y[r] = reduce_sum(sums[m][r]);
        for (int64_t i = whole; i < k; ++i) y[r] += p.a[m * k + i] * to_float(rows[r][i]);
      }
      p.write(m, y, j, std::min(j + kTogether, end));
    }
  }
}

// B as (k, n): kTogether rows of B at a time are added to the sums of the columns [begin, end).
template <int kRows, typename T>
void sum_down_columns(const Product& p, int64_t begin, int64_t end) {
  constexpr int64_t kTogether = 4;
  int64_t n = p.s.n, k = p.s.k, columns = end - begin, whole = columns / kLanes * kLanes;
  const T* b = static_cast<const T*>(p.b) + begin;
  std::vector<float> sums(size_t(kRows * columns));
  for (int64_t i = 0; i < k; i += kTogether) {
    const T *rows[kTogether], *next[kTogether];
    float x[kRows][kTogether];
    for (int64_t r = 0; r < kTogether; ++r) {
      rows[r] = b + std::min(i + r, k - 1) * n;
      next[r] = b + std::min(i + kTogether + r, k - 1) * n;
      for (int64_t m = 0; m < kRows; ++m) x[m][r] = i + r < k ? p.a[m * k + i + r] : 0;
    }
    for (int64_t c = 0; c < whole; c += kLanes) {
      Vec w[kTogether];
      for (int64_t r = 0; r < kTogether; ++r) {
        fetch_line(next[r], c);
        w[r] = load_elements(rows[r] + c);
      }
      for (int64_t m = 0; m < kRows; ++m) {
        float* at = sums.data() + m * columns + c;
        Vec sum = load(at);
        for (int64_t r = 0; r < kTogether; ++r) sum += broadcast(x[m][r]) * w[r];
        store(at, sum);
      }
    }
    for (int64_t c = whole; c < columns; ++c)
      for (int64_t m = 0; m < kRows; ++m)
        for (int64_t r = 0; r < kTogether; ++r) sums[size_t(m * columns + c)] += x[m][r] * to_float(rows[r][c]);
  }
  for (int64_t m = 0; m < kRows; ++m) p.write(m, sums.data() + m * columns, begin, end);
}

template <int kRows, typename T>
void multiply(const Product& p) {
  parallel_for(p.s.n, kColumnGrain, [&](int64_t begin, int64_t end, int) {
    if (p.s.trans_b) return sum_along_rows<kRows, T>(p, begin, end);
    for (int64_t c = begin; c < end; c += kColumnTile) sum_down_columns<kRows, T>(p, c, std::min(c + kColumnTile, end));
  });
}

template <typename T, size_t... kRows>
void multiply_any(const Product& p, std::index_sequence<kRows...>) {
  using Multiply = void (*)(const Product&);
  constexpr Multiply kByRows[] = {multiply<int(kRows) + 1, T>...};
  kByRows[p.s.m - 1](p);
}

}  // namespace

bool is_thin(const MatmulShape& s) {
  bool dense = s.lda == 0 && s.ldb == 0 && s.ldc == 0;
  return s.batch == 1 && s.m <= kMostRows && !s.trans_a && dense;
}

bool thin_supports(const MatmulOptions& options) { return has_elements(options); }

void thin_matmul(const MatmulShape& s, const MatmulOptions& o, const void* a, const void* b, void* c) {
  std::vector<float> floats(size_t(s.m * s.k));
  load(o.a, a, 0, s.m * s.k, floats.data());
  Product product{s, o, floats.data(), b, c};
  auto rows = std::make_index_sequence<size_t(kMostRows)>();
  o.b == DType::kF32 ? multiply_any<float>(product, rows) : multiply_any<Bf16>(product, rows);
}

}  // namespace tokamak::cpu
