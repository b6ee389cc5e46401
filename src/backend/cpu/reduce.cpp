#include "backend/cpu/reduce.h"

#include <cmath>
#include <cstring>

namespace tokamak::cpu {
namespace {

using Lanes = float __attribute__((vector_size(64)));
constexpr int64_t kLanes = 16, kVectors = 4;

Lanes read(const float* x) {
  Lanes v;
  std::memcpy(&v, x, sizeof v);
  return v;
}

struct Elements {
  const float* x;
  Lanes lanes(int64_t i) const { return read(x + i); }
  float one(int64_t i) const { return x[i]; }
};

struct Products {
  const float *x, *y;
  Lanes lanes(int64_t i) const { return read(x + i) * read(y + i); }
  float one(int64_t i) const { return x[i] * y[i]; }
};

}  // namespace

template <typename Terms>
void RowSum::add_terms(const Terms& terms, int64_t n) {
  std::array<Lanes, kVectors> sums;
  std::memcpy(sums.data(), lanes_.data(), sizeof sums);
  int64_t i = 0;
  for (; i + kLength <= n; i += kLength)
    for (int64_t v = 0; v < kVectors; ++v) sums[size_t(v)] += terms.lanes(i + v * kLanes);
  std::memcpy(lanes_.data(), sums.data(), sizeof sums);
  for (; i < n; ++i) tail_[size_t(tail_size_++)] = terms.one(i);
}

void RowSum::add(const float* x, int64_t n) { add_terms(Elements{x}, n); }

void RowSum::add_products(const float* x, const float* y, int64_t n) { add_terms(Products{x, y}, n); }

float RowSum::total() const {
  Lanes all = (read(&lanes_[0]) + read(&lanes_[kLanes])) + (read(&lanes_[2 * kLanes]) + read(&lanes_[3 * kLanes]));
  float total = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) total += all[lane];
  for (int64_t i = 0; i < tail_size_; ++i) total += tail_[size_t(i)];
  return total;
}

float maximum(const float* x, int64_t n) {
  Lanes a = Lanes{} - HUGE_VALF, b = a;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    Lanes u = read(x + i), v = read(x + i + kLanes);
    a = u > a ? u : a;
    b = v > b ? v : b;
  }
  a = b > a ? b : a;
  float top = -HUGE_VALF;
  for (int64_t lane = 0; lane < kLanes; ++lane) top = a[lane] > top ? a[lane] : top;
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

double sum_of_squares(const float* x, int64_t n) {
  constexpr int64_t kRun = 4096;  // short enough for float lanes
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kRun) {
    int64_t end = n < begin + kRun ? n : begin + kRun, i = begin;
    Lanes a{}, b{};
    for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
      Lanes u = read(x + i), v = read(x + i + kLanes);
      a += u * u;
      b += v * v;
    }
    a += b;
    for (int64_t lane = 0; lane < kLanes; ++lane) total += double(a[lane]);
    for (; i < end; ++i) total += double(x[i]) * double(x[i]);
  }
  return total;
}

void add_to(const float* x, int64_t n, float* sums) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) sums[i] += x[i];
}

void max_to(const float* x, int64_t n, float* maxima) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) maxima[i] = maxima[i] < x[i] ? x[i] : maxima[i];
}

}  // namespace tokamak::cpu
