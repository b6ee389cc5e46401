// What the tests of attention on the CPU share: slow, obvious twins of both passes, and random data.
#pragma once

#include "backend/cpu/attention.h"
#include "backend/cpu/simd.h"
#include "base/dropout_random.h"

#include <cmath>
#include <random>
#include <vector>

namespace tokamak::cpu {

using Doubles = std::vector<double>;
using Documents = std::vector<int32_t>;  // (B, T), where each position's begins; empty: none

// The slow obvious twins, in double; index helpers use the legend of attention.h.
struct Reference {
  AttentionShape s;
  AttentionDropout dropout;
  Documents documents = {};

  int64_t B = s.batch, T = s.time, H = s.heads, D = s.head_dim, C = s.width();
  size_t at(int which, int64_t b, int64_t t, int64_t h, int64_t d) const {
    return size_t((b * T + t) * 3 * C + which * C + h * D + d);
  }
  size_t row(int64_t b, int64_t t, int64_t h, int64_t d) const { return size_t((b * T + t) * C + h * D + d); }

  double factor(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (dropout.p == 0) return 1;
    MatrixRandom random(dropout.key, dropout.random_stream, T);
    bool dropped = random(b * H + h, i, j) < dropout_threshold(dropout.p);
    return dropped ? 0 : dropout_factor(dropout.p);
  }
  double score(const Doubles& x, int64_t b, int64_t h, int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t d = 0; d < D; ++d) sum += x[at(0, b, i, h, d)] * x[at(1, b, j, h, d)];
    return sum * double(s.scale);
  }
  bool sees(int64_t b, int64_t i, int64_t j) const {
    if (s.causal && j > i) return false;
    return documents.empty() || documents[size_t(b * T + i)] == documents[size_t(b * T + j)];
  }

  template <typename F>
  void for_queries(F f) const {
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < H; ++h)
        for (int64_t i = 0; i < T; ++i) f(b, h, i);
  }

  void forward(const Doubles& x, Doubles& out, Doubles& lse) const {
    out.assign(size_t(B * T * C), 0);
    lse.assign(size_t(B * H * T), 0);
    for_queries([&](int64_t b, int64_t h, int64_t i) {
      double total = 0;
      for (int64_t j = 0; j < T; ++j) total += sees(b, i, j) ? std::exp(score(x, b, h, i, j)) : 0;
      lse[size_t((b * H + h) * T + i)] = std::log(total);
      for (int64_t j = 0; j < T; ++j) {
        if (!sees(b, i, j)) continue;
        double p = std::exp(score(x, b, h, i, j)) / total * factor(b, h, i, j);
        for (int64_t d = 0; d < D; ++d) out[row(b, i, h, d)] += p * x[at(2, b, j, h, d)];
      }
    });
  }

  Doubles backward(const Doubles& x, const Doubles& out, const Doubles& lse, const Doubles& dout) const {
    Doubles grad(x.size(), 0);
    for_queries([&](int64_t b, int64_t h, int64_t i) {
      double delta = 0;
      for (int64_t d = 0; d < D; ++d) delta += out[row(b, i, h, d)] * dout[row(b, i, h, d)];
      for (int64_t j = 0; j < T; ++j) {
        if (!sees(b, i, j)) continue;
        double p = std::exp(score(x, b, h, i, j) - lse[size_t((b * H + h) * T + i)]), f = factor(b, h, i, j), dp = 0;
        for (int64_t d = 0; d < D; ++d) dp += dout[row(b, i, h, d)] * x[at(2, b, j, h, d)];
        double ds = p * (dp * f - delta) * double(s.scale);
        for (int64_t d = 0; d < D; ++d) {
          grad[at(0, b, i, h, d)] += ds * x[at(1, b, j, h, d)];
          grad[at(1, b, j, h, d)] += ds * x[at(0, b, i, h, d)];
          grad[at(2, b, j, h, d)] += p * f * dout[row(b, i, h, d)];
        }
      }
    });
    return grad;
  }
};

template <typename T>
std::vector<T> random_values(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<T> x(static_cast<size_t>(count));
  for (T& value : x) value = from_float<T>(normal(random));
  return x;
}

template <typename T>
Doubles doubles(const std::vector<T>& x) {
  Doubles y;
  for (T value : x) y.push_back(to_float(value));
  return y;
}

// Documents of 1 to `longest` tokens, other ones in each sample.
inline Documents random_documents(const AttentionShape& s, int64_t longest, unsigned seed) {
  std::mt19937 random(seed);
  Documents starts;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t t = 0, first = 0, left = 0; t < s.time; ++t, --left) {
      if (left == 0) {
        first = t;
        left = 1 + int64_t(random() % uint64_t(longest));
      }
      starts.push_back(int32_t(first));
    }
  return starts;
}

}  // namespace tokamak::cpu
