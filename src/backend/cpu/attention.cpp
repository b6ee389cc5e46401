#include "backend/cpu/attention.h"

#include "backend/cpu/attention_heads.h"
#include "backend/cpu/gemm_tile.h"

#include <cmath>
#include <limits>

namespace tokamak::cpu {
namespace {

// One thread's buffers.
struct Buffers {
  float *keys, *values;            // the head: (dim, padded_keys), (padded_keys, padded_dim)
  float *queries, *scores, *sums;  // the block: (kQueries, padded_dim), (kQueries, kKeys), (kQueries, padded_dim)
  float *top, *total;              // running maximum and normaliser of each query
  int64_t floats;

  Buffers(const HeadSizes& z, float* start) {
    Arena arena(start);
    keys = arena.take(z.key_columns());
    values = arena.take(z.key_rows());
    queries = arena.take(kQueries * z.padded_dim);
    scores = arena.take(kQueries * kKeys);
    sums = arena.take(kQueries * z.padded_dim);
    top = arena.take(kQueries);
    total = arena.take(kQueries);
    floats = arena.taken();
  }
};

class Forward {
 public:
  Forward(const AttentionShape& shape, const AttentionDropout& dropout, float* workspace)
      : shape_(shape), dropout_(dropout), z_(shape), x_(z_, workspace) {}

  template <typename Rows>
  void load_head(const Rows& keys, const Rows& values, const Visibility& visible) {
    visible_ = visible;
    pack_columns(z_, keys, x_.keys);
    pack_head(z_, values, z_.keys, z_.padded_keys, 1, x_.values);
  }

  // A block of queries of head number `head`.
  template <typename T>
  void run_block(HeadRows<const T> queries, int64_t head, Range block, HeadRows<T> out, float* lse) {
    auto [begin, end] = block;
    int64_t count = end - begin;
    pack_rows(z_, queries, begin, end, shape_.scale, x_.queries);
    std::fill_n(x_.sums, count * z_.padded_dim, 0.0f);
    std::fill_n(x_.top, count, -std::numeric_limits<float>::infinity());
    std::fill_n(x_.total, count, 0.0f);
    Range keys = visible_.keys(begin, end);
    for (int64_t key = keys.begin / kKeys * kKeys; key < keys.end; key += kKeys) add_keys(head, block, key);
    for (int64_t r = 0; r < count; ++r) {
      Vec inverse = broadcast(1 / x_.total[r]);
      for (float* p = row(r); p < row(r + 1); p += kLanes) store(p, load(p) * inverse);
      lse[begin + r] = x_.top[r] + std::log(x_.total[r]);
    }
    unpack_rows(z_, x_.sums, begin, end, out);
  }

 private:
  float* row(int64_t r) const { return x_.sums + r * z_.padded_dim; }

  // One block of keys: scores, probabilities, and their share of the output.
  void add_keys(int64_t head, Range block, int64_t key) {
    auto [begin, end] = block;
    int64_t skip = visible_.before(block, key);  // queries that see none of these keys
    int64_t count = end - begin - skip, depth = std::min(kKeys, z_.keys - key);
    float* scores = x_.scores + skip * kKeys;
    gemm_tile(count, kKeys, z_.dim, {x_.queries + skip * z_.padded_dim, z_.padded_dim, 1}, x_.keys + key,
              z_.padded_keys, scores, kKeys, false);
    for (int64_t r = skip; r < end - begin; ++r) softmax_row(head, begin + r, key, r);
    gemm_tile(count, z_.padded_dim, depth, {scores, kKeys, 1}, x_.values + key * z_.padded_dim, z_.padded_dim,
              row(skip), z_.padded_dim, true);
  }

  // Scores of query i (row r of the block) become probabilities relative to the running maximum.
  void softmax_row(int64_t head, int64_t i, int64_t key, int64_t r) {
    float* s = x_.scores + r * kKeys;
    Range seen = visible_.in_block(i, key);
    if (seen.begin >= seen.end) {  // another document's: there is no softmax of nothing
      std::fill_n(s, kKeys, 0.0f);
      return;
    }
    std::fill(s, s + seen.begin, -std::numeric_limits<float>::infinity());
    std::fill(s + seen.end, s + kKeys, -std::numeric_limits<float>::infinity());
    Vec highest = load(s);
    for (int64_t j = kLanes; j < kKeys; j += kLanes) highest = max(highest, load(s + j));
    float before = x_.top[r], now = std::max(before, reduce_max(highest));
    Vec top = broadcast(now), total{};
    for (int64_t j = 0; j < kKeys; j += kLanes) {
      Vec p = exp(load(s + j) - top);
      store(s + j, p);
      total += p;
    }
    if (now != before) {
      Vec shrink = exp(broadcast(before) - top);
      x_.total[r] *= shrink[0];
      x_.top[r] = now;
      for (float* p = row(r); p < row(r + 1); p += kLanes) store(p, load(p) * shrink);
    }
    x_.total[r] += reduce_sum(total);
    if (dropout_.p > 0) {
      float factors[kKeys];
      dropout_factors(dropout_, z_.keys, head, visible_.zigzag.position(i), key, factors);
      for (int64_t j = 0; j < kKeys; ++j) s[j] *= factors[j];
    }
  }

  const AttentionShape& shape_;
  const AttentionDropout& dropout_;
  HeadSizes z_;
  Buffers x_;
  Visibility visible_{};
};

}  // namespace

size_t attention_workspace_bytes(const AttentionShape& shape, int threads) {
  return size_t(Buffers(HeadSizes(shape), nullptr).floats) * sizeof(float) * size_t(threads);
}

template <typename T>
void attention(const AttentionShape& s, const AttentionDropout& dropout, const int32_t* documents, const T* qkv, T* out,
               float* lse, void* workspace, const T* kv) {
  int64_t floats = Buffers(HeadSizes(s), nullptr).floats;
  run_forward(s, documents, qkv, out, lse, kv,
              [&](int thread) { return Forward(s, dropout, static_cast<float*>(workspace) + thread * floats); });
}

template void attention<float>(const AttentionShape&, const AttentionDropout&, const int32_t*, const float*, float*,
                               float*, void*, const float*);
template void attention<Bf16>(const AttentionShape&, const AttentionDropout&, const int32_t*, const Bf16*, Bf16*,
                              float*, void*, const Bf16*);

}  // namespace tokamak::cpu
