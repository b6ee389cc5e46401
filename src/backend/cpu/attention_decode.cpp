#include "backend/cpu/attention.h"

#include "backend/cpu/attention_blocks.h"
#include "base/parallel.h"

#include <limits>
#include <vector>

namespace tokamak::cpu {
namespace {

template <typename T>
float dot(const float* a, const T* b, int64_t n) {
  float parts[kLanes] = {};  // independent sums, so that the loop vectorises
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) parts[l] += a[i + l] * to_float(b[i + l]);
  for (; i < n; ++i) parts[i % kLanes] += a[i] * to_float(b[i]);
  Vec sums = load(parts);
  return reduce_sum(sums);
}

// One query over the first `count` rows of a head's cache: blocks of keys with an online softmax. query is scaled.
template <typename T>
void attend(const float* query, const T* keys, const T* values, int64_t ld, int64_t count, int64_t dim, float* sum) {
  float top = -std::numeric_limits<float>::infinity(), total = 0;
  std::fill_n(sum, dim, 0.0f);
  for (int64_t first = 0; first < count; first += kKeys) {
    int64_t visible = std::min(kKeys, count - first);
    float p[kKeys], before = top;
    std::fill_n(p, kKeys, -std::numeric_limits<float>::infinity());
    for (int64_t j = 0; j < visible; ++j) top = std::max(top, p[j] = dot(query, keys + (first + j) * ld, dim));
    for (int64_t j = 0; j < kKeys; j += kLanes) {
      store(p + j, exp(load(p + j) - broadcast(top)));
    }
    float shrink = exp(broadcast(before - top))[0];
    total *= shrink;
    for (int64_t d = 0; d < dim; ++d) sum[d] *= shrink;
    for (int64_t j = 0; j < visible; ++j) {
      total += p[j];
      const T* value = values + (first + j) * ld;
      for (int64_t d = 0; d < dim; ++d) sum[d] += p[j] * to_float(value[d]);
    }
  }
  for (int64_t d = 0; d < dim; ++d) sum[d] /= total;
}

}  // namespace

template <typename T>
void attention_decode(const AttentionShape& s, const int32_t* positions, int64_t capacity, const T* qkv, T* cache,
                      T* out, int64_t window) {
  int64_t C = s.width(), D = s.head_dim;
  auto place = [&](int64_t b, int64_t t) { return positions[b] + t; };
  auto fits = [&](int64_t b, int64_t t) { return place(b, t) >= 0 && place(b, t) < capacity; };
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t t = 0; t < s.time; ++t)
      if (fits(b, t))
        std::copy_n(qkv + (b * s.time + t) * 3 * C + C, 2 * C, cache + (b * capacity + place(b, t)) * 2 * C);
  parallel_for(s.batch * s.heads * s.time, 1, [&](int64_t first, int64_t last, int) {
    std::vector<float> buffer(size_t(2 * D));
    float *query = buffer.data(), *sum = query + D;
    for (int64_t item = first; item < last; ++item) {
      int64_t t = item % s.time, h = item / s.time % s.heads, b = item / s.time / s.heads;
      const T* q = qkv + (b * s.time + t) * 3 * C + h * D;
      for (int64_t d = 0; d < D; ++d) query[d] = to_float(q[d]) * s.scale;
      const T* keys = cache + b * capacity * 2 * C + h * D;
      std::fill_n(sum, D, std::numeric_limits<float>::quiet_NaN());
      if (fits(b, t)) {
        int64_t count = place(b, t) + 1, hidden = window > 0 ? std::max<int64_t>(count - window, 0) : 0;
        keys += hidden * 2 * C;
        attend(query, keys, keys + C, 2 * C, count - hidden, D, sum);
      }
      for (int64_t d = 0; d < D; ++d) out[(b * s.time + t) * C + h * D + d] = from_float<T>(sum[d]);
    }
  });
}

template void attention_decode<float>(const AttentionShape&, const int32_t*, int64_t, const float*, float*, float*,
                                      int64_t);
template void attention_decode<Bf16>(const AttentionShape&, const int32_t*, int64_t, const Bf16*, Bf16*, Bf16*,
                                     int64_t);

}  // namespace tokamak::cpu
