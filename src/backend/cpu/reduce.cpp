#include "backend/cpu/reduce.h"

#include <cmath>
#include <cstring>

namespace tokamak::cpu {
namespace {

using Lanes = float __attribute__((vector_size(64)));
constexpr int64_t kLanes = 16, kBlock = 4 * kLanes;

Lanes read(const float* x) {
  Lanes v;
  std::memcpy(&v, x, sizeof v);
  return v;
}

}  // namespace

float sum(const float* x, int64_t n) {
  Lanes a{}, b{}, c{}, d{};
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    a += read(x + i);
    b += read(x + i + kLanes);
    c += read(x + i + 2 * kLanes);
    d += read(x + i + 3 * kLanes);
  }
  Lanes all = (a + b) + (c + d);
  float total = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) total += all[lane];
  for (; i < n; ++i) total += x[i];
  return total;
}

float dot(const float* x, const float* y, int64_t n) {
  Lanes a{}, b{}, c{}, d{};
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    a += read(x + i) * read(y + i);
    b += read(x + i + kLanes) * read(y + i + kLanes);
    c += read(x + i + 2 * kLanes) * read(y + i + 2 * kLanes);
    d += read(x + i + 3 * kLanes) * read(y + i + 3 * kLanes);
  }
  Lanes all = (a + b) + (c + d);
  float total = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) total += all[lane];
  for (; i < n; ++i) total += x[i] * y[i];
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
