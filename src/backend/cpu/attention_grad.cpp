// The gradient of attention: probabilities come back from the scores and lse, so nothing of size T x T was kept.
// Per block of queries i and keys j: dV += P^T dO, dS = P (dO V^T - rowsum(dO O)), dQ += dS K, dK += dS^T Q.
#include "backend/cpu/attention.h"

#include "backend/cpu/attention_heads.h"
#include "backend/cpu/gemm_tile.h"

namespace tokamak::cpu {
namespace {

// One thread's buffers: the head packed in the layouts that the five products want, and two blocks of scores.
struct Buffers {
  float *key_columns, *value_columns;      // (dim, padded_keys)
  float* keys;                             // (padded_keys, padded_dim)
  float *queries, *dout, *dqueries;        // (padded_time, padded_dim)
  float *dkeys, *dvalues;                  // (kKeys, padded_dim)
  float *probabilities, *dscores, *delta;  // (kQueries, kKeys) twice; (time): rowsum(dO O)
  int64_t floats;

  Buffers(const HeadSizes& z, float* start) {
    Arena arena(start);
    for (float** columns : {&key_columns, &value_columns}) *columns = arena.take(z.key_columns());
    keys = arena.take(z.key_rows());
    for (float** rows : {&queries, &dout, &dqueries}) *rows = arena.take(z.query_rows());
    for (float** block : {&dkeys, &dvalues}) *block = arena.take(kKeys * z.padded_dim);
    for (float** block : {&probabilities, &dscores}) *block = arena.take(kQueries * kKeys);
    delta = arena.take(z.padded_time);
    floats = arena.taken();
  }
};

template <typename T, template <typename> typename Keys>
class Backward {
 public:
  Backward(const AttentionShape& shape, const AttentionDropout& dropout, float* workspace)
      : shape_(shape), dropout_(dropout), z_(shape), x_(z_, workspace), blocks_{shape.zigzag()} {}

  void load_head(const GradientHead<T, Keys>& head) {
    if (head.index == head_.index) return;
    head_ = head;
    pack_columns(z_, head.keys, x_.key_columns);
    pack_columns(z_, head.values, x_.value_columns);
    pack_head(z_, head.keys, z_.keys, z_.padded_keys, 1, x_.keys);
    pack_head(z_, head.queries, z_.time, z_.padded_time, shape_.scale, x_.queries);
    pack_head(z_, head.dout, z_.time, z_.padded_time, 1, x_.dout);
    for (int64_t t = 0; t < z_.time; ++t) {
      float sum = 0;
      for (int64_t d = 0; d < z_.dim; ++d) sum += to_float(head.out(t)[d]) * to_float(head.dout(t)[d]);
      x_.delta[t] = sum;
    }
  }

  // All gradients of the head.
  void run_head() {
    std::fill_n(x_.dqueries, z_.query_rows(), 0.0f);
    for (int64_t key = 0; key < z_.keys; key += kKeys) run_keys(key, true);
    write_dqueries({0, z_.time});
  }

  // dk and dv of one block of keys, over all queries; with_queries adds its share of dq.
  void run_keys(int64_t key, bool with_queries) {
    int64_t depth = std::min(kKeys, z_.keys - key), n = z_.padded_dim;
    std::fill_n(x_.dkeys, kKeys * n, 0.0f);
    std::fill_n(x_.dvalues, kKeys * n, 0.0f);
    for (int64_t block = 0; block < blocks_.count(); ++block) {
      Range queries = blocks_[block], seen = head_.visible.keys(queries.begin, queries.end);
      if (seen.begin >= key + depth || seen.end <= key) continue;
      Rows rows = score_block(queries, key);
      gemm_tile(depth, n, rows.count, {x_.probabilities, 1, kKeys}, x_.dout + rows.first * n, n, x_.dvalues, n, true);
      gemm_tile(depth, n, rows.count, {x_.dscores, 1, kKeys}, x_.queries + rows.first * n, n, x_.dkeys, n, true);
      if (with_queries) add_dqueries(rows, key);
    }
    unpack_rows(z_, x_.dkeys, key, key + depth, head_.dkeys);
    unpack_rows(z_, x_.dvalues, key, key + depth, head_.dvalues);
  }

  // dq of one block of queries, over all keys.
  void run_queries(int64_t number) {
    Range block = blocks_[number];
    std::fill_n(x_.dqueries + block.begin * z_.padded_dim, (block.end - block.begin) * z_.padded_dim, 0.0f);
    Range keys = head_.visible.keys(block.begin, block.end);
    for (int64_t key = keys.begin / kKeys * kKeys; key < keys.end; key += kKeys)
      add_dqueries(score_block(block, key), key);
    write_dqueries(block);
  }

 private:
  struct Rows {
    int64_t first, count;
  };

  // Fills probabilities (with dropout) and dscores for the queries of the block that see some of the keys.
  Rows score_block(Range block, int64_t key) {
    int64_t first = block.begin + head_.visible.before(block, key), n = z_.padded_dim;
    Rows rows{first, block.end - first};
    gemm_tile(rows.count, kKeys, z_.dim, {x_.queries + first * n, n, 1}, x_.key_columns + key, z_.padded_keys,
              x_.probabilities, kKeys, false);
    gemm_tile(rows.count, kKeys, z_.dim, {x_.dout + first * n, n, 1}, x_.value_columns + key, z_.padded_keys,
              x_.dscores, kKeys, false);
    for (int64_t r = 0; r < rows.count; ++r) score_row(first + r, key, r * kKeys);
    return rows;
  }

  void score_row(int64_t i, int64_t key, int64_t at) {
    float *p = x_.probabilities + at, *ds = x_.dscores + at;
    Vec lse = broadcast(head_.lse[i]), delta = broadcast(x_.delta[i]);
    float factors[kKeys] = {};
    int64_t position = head_.visible.zigzag.position(i);
    if (dropout_.p > 0) dropout_factors(dropout_, z_.keys, head_.index, position, key, factors);
    for (int64_t j = 0; j < kKeys; j += kLanes) {
      Vec probability = exp(load(p + j) - lse), grad = load(ds + j);
      Vec factor = dropout_.p > 0 ? load(factors + j) : broadcast(1.0f);
      store(p + j, probability * factor);
      store(ds + j, probability * (grad * factor - delta));
    }
    Range seen = head_.visible.in_block(i, key);
    for (float* row : {p, ds}) {
      std::fill(row, row + seen.begin, 0.0f);
      std::fill(row + seen.end, row + kKeys, 0.0f);
    }
  }

  void add_dqueries(Rows rows, int64_t key) {
    int64_t n = z_.padded_dim, depth = std::min(kKeys, z_.keys - key);
    gemm_tile(rows.count, n, depth, {x_.dscores, kKeys, 1}, x_.keys + key * n, n, x_.dqueries + rows.first * n, n,
              true);
  }

  void write_dqueries(Range block) {
    auto [begin, end] = block;
    float* rows = x_.dqueries + begin * z_.padded_dim;
    for (int64_t i = 0; i < (end - begin) * z_.padded_dim; ++i) rows[i] *= shape_.scale;
    unpack_rows(z_, rows, begin, end, head_.dqueries);
  }

  const AttentionShape& shape_;
  const AttentionDropout& dropout_;
  HeadSizes z_;
  Buffers x_;
  QueryBlocks blocks_;
  GradientHead<T, Keys> head_;
};

// All heads; head(i) says where head i is.
template <typename T, template <typename> typename Keys, typename HeadOf>
void run_heads(const AttentionShape& s, const AttentionDropout& dropout, float* workspace, const HeadOf& head) {
  int64_t floats = Buffers(HeadSizes(s), nullptr).floats;
  run_backward(s, head, [&](int thread) { return Backward<T, Keys>(s, dropout, workspace + thread * floats); });
}

}  // namespace

size_t attention_grad_workspace_bytes(const AttentionShape& shape, int threads) {
  return size_t(Buffers(HeadSizes(shape), nullptr).floats) * sizeof(float) * size_t(threads);
}

template <typename T>
void attention_grad(const AttentionShape& s, const AttentionDropout& dropout, const int32_t* documents, const T* qkv,
                    const T* out, const float* lse, const T* dout, T* dqkv, void* workspace, const T* kv, T* dkv) {
  run_gradient<T>(s, {documents, qkv, out, lse, dout, dqkv, kv, dkv},
                  [&]<template <typename> typename Keys>(const auto& find) {
                    run_heads<T, Keys>(s, dropout, static_cast<float*>(workspace), find);
                  });
}

template void attention_grad<float>(const AttentionShape&, const AttentionDropout&, const int32_t*, const float*,
                                    const float*, const float*, const float*, float*, void*, const float*, float*);
template void attention_grad<Bf16>(const AttentionShape&, const AttentionDropout&, const int32_t*, const Bf16*,
                                   const Bf16*, const float*, const Bf16*, Bf16*, void*, const Bf16*, Bf16*);

}  // namespace tokamak::cpu
