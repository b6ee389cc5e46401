#include "backend/cpu/tiled_attention.h"

#include "backend/cpu/attention_heads.h"
#include "backend/cpu/tiled_attention_blocks.h"

#include <limits>

namespace tokamak::cpu {
namespace {

// Keys whose scores are there at once: 16 KB of a group's scores and 16 KB of keys stay in L1.
constexpr int64_t kSpan = 128;

// One thread's buffers.
struct Buffers {
  uint16_t *keys, *values;  // the head: left operands, (padded_keys, padded_dim) and its transpose
  uint16_t* rows;           // (32, padded_dim), dense
  uint16_t* queries;        // of each group the transpose, a right operand
  float *scores, *dropout;  // (2, kSpan, 16)
  uint16_t* probabilities;  // (kSpan, 32), a right operand
  float* sums;              // of each group (2, padded_dim, 16)
  float *top, *total;       // of each query
  int64_t floats;

  Buffers(const TiledHead& z, float* start) {
    Arena arena(start);
    for (uint16_t** head : {&keys, &values}) *head = take_words(arena, z.padded_keys * z.padded_dim);
    rows = take_words(arena, z.group());
    queries = take_words(arena, kQueries * z.padded_dim);
    for (float** block : {&scores, &dropout}) *block = arena.take(kSpan * kGroup);
    probabilities = take_words(arena, kSpan * kGroup);
    sums = arena.take(kQueries * z.padded_dim);
    for (float** row : {&top, &total}) *row = arena.take(kQueries);
    floats = arena.taken();
  }
};

class Forward {
 public:
  Forward(const TileUnits& units, const AttentionShape& shape, const AttentionDropout& dropout, float* workspace)
      : units_(units), shape_(shape), dropout_(dropout), z_(shape), x_(z_, workspace) {
    units_.enter();
  }
  ~Forward() { units_.leave(); }

  template <typename Rows>
  void load_head(const Rows& keys, const Rows& values, const Visibility& visible) {
    visible_ = visible;
    for (int64_t t = 0; t < z_.padded_keys; t += kGroup) {
      gather_rows(z_, keys, t, z_.keys, x_.rows);
      pack_left(z_, x_.rows, x_.keys + t * z_.padded_dim);
      gather_rows(z_, values, t, z_.keys, x_.rows);
      pack_left_transposed(z_, x_.rows, x_.values + t * z_.padded_dim);
    }
  }

  // A block of queries of head number `head`.
  void run_block(HeadRows<const Bf16> queries, int64_t head, Range block, HeadRows<Bf16> out, float* lse) {
    int64_t groups = round_up(block.end - block.begin, kGroup) / kGroup;
    for (int64_t g = 0; g < groups; ++g) {
      gather_rows(z_, queries, block.begin + g * kGroup, block.end, x_.rows);
      pack_right_transposed(z_, x_.rows, x_.queries + g * z_.group());
    }
    std::fill_n(x_.sums, kQueries * z_.padded_dim, 0.0f);
    std::fill_n(x_.top, kQueries, -std::numeric_limits<float>::infinity());
    std::fill_n(x_.total, kQueries, 0.0f);
    BlockSight sight(visible_, block);
    Range keys = visible_.keys(block.begin, block.end);
    for (int64_t key = keys.begin / kSpan * kSpan; key < keys.end; key += kSpan)
      for (int64_t g = 0; g < groups; ++g) add_keys(head, block, sight, g, key);
    for (int64_t g = 0; g < groups; ++g) write(g, block, out, lse);
  }

 private:
  // A span of keys for one group: scores, probabilities, and their share of the output.
  void add_keys(int64_t head, Range block, const BlockSight& sight, int64_t g, int64_t key) {
    Range seen = sight.of_group(g);
    int64_t first = std::max(key, seen.begin / kGroup * kGroup);
    int64_t count = std::min(key + kSpan, round_up(seen.end, kGroup)) - first;
    if (count <= 0) return;
    int64_t tile = count * kTileSide;  // from one column of tiles to the next
    units_.multiply({count,
                     kGroup,
                     z_.padded_dim,
                     {x_.scores, kTileSums, tile},
                     left_operand(z_, x_.keys + first * z_.padded_dim),
                     right_transposed(x_.queries + g * z_.group()),
                     false});
    int32_t begin[kGroup], end[kGroup];
    sight.from_key(g, first, begin, end);
    float* sums = x_.sums + g * z_.group();
    bool drops = dropout_.p > 0;
    if (drops)
      group_dropout_factors(dropout_, z_.keys, head, visible_.zigzag.position(block.begin) + g * kGroup, first, count,
                            x_.dropout);
    add_softmax({x_.scores, count, shape_.scale * kLog2E, begin, end, drops ? x_.dropout : nullptr, x_.probabilities,
                 x_.top + g * kGroup, x_.total + g * kGroup, sums, z_.padded_dim});
    units_.multiply({z_.padded_dim,
                     kGroup,
                     count,
                     {sums, kTileSums, z_.padded_dim * kTileSide},
                     left_transposed(z_, x_.values + first * z_.padded_dim),
                     {x_.probabilities, kTileElements, tile},
                     true});
  }

  void write(int64_t g, Range block, HeadRows<Bf16> out, float* lse) {
    float inverse[kGroup];
    int64_t begin = block.begin + g * kGroup, end = std::min(begin + kGroup, block.end);
    const float *top = x_.top + g * kGroup, *total = x_.total + g * kGroup;
    for (int64_t r = 0; r < kGroup; ++r) inverse[r] = 1 / total[r];
    for (int64_t t = begin; t < end; ++t) lse[t] = top[t - begin] * shape_.scale + std::log(total[t - begin]);
    const float* sums = x_.sums + g * z_.group();
    for (int64_t half = 0; half < kGroup; half += kTileSide)
      round_columns(sums + half * z_.padded_dim, kTileSums, z_.padded_dim, inverse + half,
                    x_.rows + half * z_.padded_dim, z_.padded_dim);
    scatter_rows(z_, x_.rows, begin, end, out);
  }

  const TileUnits& units_;
  const AttentionShape& shape_;
  const AttentionDropout& dropout_;
  TiledHead z_;
  Buffers x_;
  Visibility visible_{};
};

}  // namespace

bool has_tiled_attention(const AttentionShape& shape) { return shape.scale > 0; }

size_t tiled_attention_workspace_bytes(const AttentionShape& shape, int threads) {
  return size_t(Buffers(TiledHead(shape), nullptr).floats) * sizeof(float) * size_t(threads);
}

void tiled_attention(const TileUnits& units, const AttentionShape& s, const AttentionDropout& dropout,
                     const int32_t* documents, const Bf16* qkv, Bf16* out, float* lse, void* workspace,
                     const Bf16* kv) {
  int64_t floats = Buffers(TiledHead(s), nullptr).floats;
  run_forward(s, documents, qkv, out, lse, kv,
              [&](int thread) { return Forward(units, s, dropout, static_cast<float*>(workspace) + thread * floats); });
}

}  // namespace tokamak::cpu
