// As attention_grad.cpp. Scores lie as keys by queries, so for a block of each: dV += P^T dO, dK += dS^T Q, and
// dQ^T += K^T dS^T.
#include "backend/cpu/tiled_attention.h"

#include "backend/cpu/attention_heads.h"
#include "backend/cpu/tiled_attention_blocks.h"

namespace tokamak::cpu {
namespace {

// One thread's buffers.
struct Buffers {
  uint16_t *keys, *values;                   // left operands, (padded_keys, padded_dim)
  uint16_t* keys_transposed;                 // a left operand, (padded_dim, padded_keys)
  uint16_t *queries, *dout;                  // right operands, (padded_time, padded_dim)
  uint16_t *queries_turned, *dout_turned;    // right operands, the transpose of each group
  float* dqueries;                           // of each group (2, padded_dim, 16)
  float *dkeys, *dvalues;                    // (kKeys, padded_dim), in tiles
  float *scores, *dprobabilities, *dropout;  // of a group and 32 keys: (2, 32, 16)
  uint16_t *probabilities, *dscores;         // left operands, (kKeys, kQueries)
  uint16_t* dscores_right;                   // a right operand, (kKeys, kQueries)
  uint16_t *rows, *more_rows;                // (32, padded_dim), dense
  float *lse, *delta;                        // (padded_time)
  int64_t floats;

  Buffers(const TiledHead& z, float* start) {
    Arena arena(start);
    for (uint16_t** head : {&keys, &values, &keys_transposed}) *head = take_words(arena, z.padded_keys * z.padded_dim);
    for (uint16_t** head : {&queries, &dout, &queries_turned, &dout_turned})
      *head = take_words(arena, z.padded_time * z.padded_dim);
    dqueries = arena.take(z.padded_time * z.padded_dim);
    for (float** block : {&dkeys, &dvalues}) *block = arena.take(kKeys * z.padded_dim);
    for (float** block : {&scores, &dprobabilities, &dropout}) *block = arena.take(kGroup * kGroup);
    for (uint16_t** block : {&probabilities, &dscores, &dscores_right}) *block = take_words(arena, kKeys * kQueries);
    for (uint16_t** block : {&rows, &more_rows}) *block = take_words(arena, z.group());
    for (float** row : {&lse, &delta}) *row = arena.take(z.padded_time);
    floats = arena.taken();
  }
};

template <template <typename> typename Keys>
class Backward {
 public:
  Backward(const TileUnits& units, const AttentionShape& shape, const AttentionDropout& dropout, float* workspace)
      : units_(units), shape_(shape), dropout_(dropout), z_(shape), x_(z_, workspace), blocks_{shape.zigzag()} {
    units_.enter();
  }
  ~Backward() { units_.leave(); }

  void load_head(const GradientHead<Bf16, Keys>& head) {
    if (head.index == head_.index) return;
    head_ = head;
    for (int64_t t = 0; t < z_.padded_keys; t += kGroup) {
      gather_rows(z_, head.keys, t, z_.keys, x_.rows);
      pack_left(z_, x_.rows, x_.keys + t * z_.padded_dim);
      pack_left_transposed(z_, x_.rows, x_.keys_transposed + t * z_.padded_dim);
      gather_rows(z_, head.values, t, z_.keys, x_.rows);
      pack_left(z_, x_.rows, x_.values + t * z_.padded_dim);
    }
    for (int64_t block = 0; block < blocks_.count(); ++block)
      for (int64_t g = 0; g < kGroups; ++g) load_queries(blocks_[block], g, block * kGroups + g);
  }

  // All gradients of the head.
  void run_head() {
    std::fill_n(x_.dqueries, z_.padded_time * z_.padded_dim, 0.0f);
    for (int64_t key = 0; key < z_.keys; key += kKeys) run_keys(key, true);
    for (int64_t block = 0; block < blocks_.count(); ++block) write_dqueries(block);
  }

  // dk and dv of one block of keys, over all queries; with_queries adds its share of dq.
  void run_keys(int64_t key, bool with_queries) {
    int64_t depth = std::min(kKeys, z_.keys - key);
    for (float* sums : {x_.dkeys, x_.dvalues}) std::fill_n(sums, kKeys * z_.padded_dim, 0.0f);
    for (int64_t block = 0; block < blocks_.count(); ++block) {
      Range groups = score_block(block, key);
      if (groups.begin >= groups.end) continue;
      add_keys(block, groups, x_.probabilities, x_.dout, x_.dvalues);
      add_keys(block, groups, x_.dscores, x_.queries, x_.dkeys);
      if (with_queries) add_dqueries(block, groups, key);
    }
    write_keys(x_.dkeys, shape_.scale, key, key + depth, head_.dkeys);
    write_keys(x_.dvalues, 1, key, key + depth, head_.dvalues);
  }

  // dq of one block of queries, over all keys.
  void run_queries(int64_t block) {
    std::fill_n(x_.dqueries + block * kQueries * z_.padded_dim, kQueries * z_.padded_dim, 0.0f);
    Range keys = head_.visible.keys(blocks_[block].begin, blocks_[block].end);
    for (int64_t key = keys.begin / kKeys * kKeys; key < keys.end; key += kKeys) {
      Range groups = score_block(block, key);
      if (groups.begin < groups.end) add_dqueries(block, groups, key);
    }
    write_dqueries(block);
  }

 private:
  static constexpr int64_t kTilesBelow = kGroups * kTileElements;  // of left operands of (kKeys, kQueries)

  void load_queries(Range block, int64_t g, int64_t place) {
    int64_t begin = block.begin + g * kGroup, count = std::clamp<int64_t>(block.end - begin, 0, kGroup);
    gather_rows(z_, head_.dout, begin, block.end, x_.rows);
    pack_right(z_, x_.rows, x_.dout + place * z_.group());
    pack_right_transposed(z_, x_.rows, x_.dout_turned + place * z_.group());
    gather_rows(z_, head_.out, begin, block.end, x_.more_rows);
    multiply_rows(x_.rows, x_.more_rows, kGroup, z_.padded_dim, x_.delta + place * kGroup);
    gather_rows(z_, head_.queries, begin, block.end, x_.rows);
    pack_right(z_, x_.rows, x_.queries + place * z_.group());
    pack_right_transposed(z_, x_.rows, x_.queries_turned + place * z_.group());
    float* lse = x_.lse + place * kGroup;
    std::fill_n(lse, kGroup, 0.0f);
    for (int64_t r = 0; r < count; ++r) lse[r] = head_.lse[begin + r] * kLog2E;
  }

  // Fills probabilities (with dropout) and dscores for the groups of the block that see some of the keys: those.
  Range score_block(int64_t block, int64_t key) {
    Range queries = blocks_[block], seen = head_.visible.keys(queries.begin, queries.end);
    if (seen.begin >= key + kKeys || seen.end <= key) return {0, 0};
    BlockSight sight(head_.visible, queries);
    Range groups{kGroups, 0};
    for (int64_t g = 0; g < round_up(queries.end - queries.begin, kGroup) / kGroup; ++g) {
      Range keys = sight.of_group(g);
      if (keys.begin >= key + kKeys || keys.end <= key) continue;
      groups = {std::min(groups.begin, g), g + 1};
    }
    for (int64_t g = groups.begin; g < groups.end; ++g)
      for (int64_t half = 0; half < kKeys; half += kGroup) score_group(block, sight, g, key, half);
    return groups;
  }

  // 32 of a block of keys, from `half` on.
  void score_group(int64_t block, const BlockSight& sight, int64_t g, int64_t key, int64_t half) {
    int64_t first = key + half, place = block * kGroups + g;
    int64_t left = half / kTileSide * kTilesBelow + g * kTileElements;
    uint16_t* right = x_.dscores_right + (half / kGroup * kGroups + g) * 2 * kTileElements;
    Range seen = sight.of_group(g);
    if (seen.begin >= first + kGroup || seen.end <= first) {
      for (uint16_t* tiles : {x_.probabilities + left, x_.dscores + left})
        for (int64_t below : {int64_t(0), kTilesBelow}) std::fill_n(tiles + below, kTileElements, uint16_t(0));
      std::fill_n(right, 2 * kTileElements, uint16_t(0));
      return;
    }
    auto multiply = [&](const uint16_t* a, const uint16_t* b, float* c) {
      units_.multiply({kGroup,
                       kGroup,
                       z_.padded_dim,
                       {c, kTileSums, kGroup * kTileSide},
                       left_operand(z_, a + first * z_.padded_dim),
                       right_transposed(b + place * z_.group()),
                       false});
    };
    multiply(x_.keys, x_.queries_turned, x_.scores);
    multiply(x_.values, x_.dout_turned, x_.dprobabilities);
    int32_t begin[kGroup], end[kGroup];
    sight.from_key(g, first, begin, end);
    bool drops = dropout_.p > 0;
    if (drops)
      group_dropout_factors(dropout_, z_.keys, head_.index,
                            head_.visible.zigzag.position(blocks_[block].begin) + g * kGroup, first, kGroup,
                            x_.dropout);
    score_grad({x_.scores, x_.dprobabilities, shape_.scale * kLog2E, x_.lse + place * kGroup, x_.delta + place * kGroup,
                begin, end, drops ? x_.dropout : nullptr, x_.probabilities + left, x_.dscores + left, kTilesBelow,
                right});
  }

  // The block's share of dk or dv.
  void add_keys(int64_t block, Range groups, const uint16_t* left, const uint16_t* right, float* sums) {
    units_.multiply({kKeys,
                     z_.padded_dim,
                     (groups.end - groups.begin) * kGroup,
                     {sums, z_.side() * kTileSums, kTileSums},
                     {left + groups.begin * kTileElements, kTilesBelow, kTileElements},
                     right_operand(z_, right + (block * kGroups + groups.begin) * z_.group()),
                     true});
  }

  void add_dqueries(int64_t block, Range groups, int64_t key) {
    float* sums = x_.dqueries + (block * kGroups + groups.begin) * z_.group();
    units_.multiply({z_.padded_dim,
                     (groups.end - groups.begin) * kGroup,
                     kKeys,
                     {sums, kTileSums, z_.padded_dim * kTileSide},
                     left_transposed(z_, x_.keys_transposed + key * z_.padded_dim),
                     {x_.dscores_right + groups.begin * 2 * kTileElements, 2 * kTilesBelow, kTileElements},
                     true});
  }

  template <typename Rows>
  void write_keys(const float* sums, float factor, int64_t begin, int64_t end, const Rows& rows) {
    for (int64_t key = begin; key < end; key += kGroup) {
      for (int64_t half = 0; half < kGroup; half += kTileSide, sums += z_.side() * kTileSums)
        round_rows(sums, kTileSums, z_.padded_dim, factor, x_.rows + half * z_.padded_dim, z_.padded_dim);
      scatter_rows(z_, x_.rows, key, std::min(key + kGroup, end), rows);
    }
  }

  void write_dqueries(int64_t block) {
    Range queries = blocks_[block];
    float scale[kTileSide];
    std::fill_n(scale, kTileSide, shape_.scale);
    const float* sums = x_.dqueries + block * kQueries * z_.padded_dim;
    for (int64_t begin = queries.begin; begin < queries.end; begin += kGroup) {
      for (int64_t half = 0; half < kGroup; half += kTileSide, sums += kTileSide * z_.padded_dim)
        round_columns(sums, kTileSums, z_.padded_dim, scale, x_.rows + half * z_.padded_dim, z_.padded_dim);
      scatter_rows(z_, x_.rows, begin, std::min(begin + kGroup, queries.end), head_.dqueries);
    }
  }

  const TileUnits& units_;
  const AttentionShape& shape_;
  const AttentionDropout& dropout_;
  TiledHead z_;
  Buffers x_;
  QueryBlocks blocks_;
  GradientHead<Bf16, Keys> head_;
};

// All heads; head(i) says where head i is.
template <template <typename> typename Keys, typename HeadOf>
void run_heads(const TileUnits& units, const AttentionShape& s, const AttentionDropout& dropout, float* workspace,
               const HeadOf& head) {
  int64_t floats = Buffers(TiledHead(s), nullptr).floats;
  run_backward(s, head, [&](int thread) { return Backward<Keys>(units, s, dropout, workspace + thread * floats); });
}

}  // namespace

size_t tiled_attention_grad_workspace_bytes(const AttentionShape& shape, int threads) {
  return size_t(Buffers(TiledHead(shape), nullptr).floats) * sizeof(float) * size_t(threads);
}

void tiled_attention_grad(const TileUnits& units, const AttentionShape& s, const AttentionDropout& dropout,
                          const int32_t* documents, const Bf16* qkv, const Bf16* out, const float* lse,
                          const Bf16* dout, Bf16* dqkv, void* workspace, const Bf16* kv, Bf16* dkv) {
  run_gradient<Bf16>(s, {documents, qkv, out, lse, dout, dqkv, kv, dkv},
                     [&]<template <typename> typename Keys>(const auto& find) {
                       run_heads<Keys>(units, s, dropout, static_cast<float*>(workspace), find);
                     });
}

}  // namespace tokamak::cpu
