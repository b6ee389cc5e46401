// The gradient of attention on Hopper's tensor cores, for heads of 64 and of 128 and whole tiles of 128 rows. With P
// the probabilities, computed again from q, k and lse:  dV = P^T dout,  dP = dout v^T,  dS = P (dP - delta), dQ = scale
// dS k,  dK = scale dS^T q,  where delta = sum of out * dout over a row (Dao et al., "FlashAttention", 2022; Shah et
// al., "FlashAttention-3", 2024, for the division of labour).
//
// A block works on one tile of keys after the other, the last of a head first, of a head that it shares with others or
// has for itself (Work), going through the tiles of queries, of 128 rows (64 for heads of 128). One thread of the first
// warp group copies tiles ahead. The two others hold S^T, dP^T, dK and dV of 64 keys each in registers. What a tile
// adds to dQ is multiplied while S^T of the next one is, and summed over the tiles of keys in memory that stays in L2.
// Each warp adds to its own part of that sum, one tile after the other, and in a shared head waits for the same warp of
// the block that has the tile of keys before: so the result has the same bits in every run.
//
// With kDropout, F its factors:  dV = (P F)^T dout,  dS = P (dP F - delta). F's number for what is kept is multiplied
// at the end: P and dS are kept without it, and delta comes divided by it.
//
// With kSums it also gives what kernels/attention_column_sums.cu makes sums of dqkv over B and T of: each warp the sums
// of a head's dQ over the rows that it writes, and with kDropout those of dV.
//
// With kFloat8 dqkv is e5m2: rounded to Element, times a factor, rounded again, as a cast behind it would.
//
// The text before this says what kernels/attention_hopper.cuh wants, and kSums (not where kRanks are several).
//
// Where kRanks are several, a tile of keys may be seen by none of the rank's queries: its gradient is zero, and it has
// no part in what is said above.
#include "backend/cuda/kernels/attention_hopper.cuh"

namespace tokamak {

constexpr bool kWide = kHeadDim == 128;
constexpr int kTile = 128;  // rows of keys
constexpr int kQueries = kWide ? 64 : 128, kSplit = kTile / kQueries;  // rows of queries; their tiles in one of keys
constexpr int kStages = 2, kValueStages = kWide ? 1 : 2;  // tiles in shared memory, of queries and keys, and of values
constexpr int kWarps = 8;   // that compute
constexpr int kWarpFloats = kWarpRows * 64;  // of dQ
constexpr int kScores = kQueries / 2;        // of a tile that a thread holds
constexpr int kHeadFloats = kHeadDim / 2;    // of dK and dV that a thread holds
// Of a thread of the first warp group, and of one of the two others: together as many as three have at the start.
// Sums of dQ without the causal mask would spill, and what is wide.
constexpr bool kMore = kWide || (kSums && !kCausal);
constexpr int kCopyRegisters = kMore ? 24 : 40, kComputeRegisters = kMore ? 240 : 232;

struct Queries {
  Element q[kQueries * kHeadDim], dout[kQueries * kHeadDim];
};
struct RowStates {
  float lse[kQueries], delta[kQueries];  // lse in units of log 2
};

struct Shared {
  Queries queries[kStages];
  Element keys[kStages][kTile * kHeadDim], values[kValueStages][kTile * kHeadDim];
  Element ds[kStages][kQueries / 64][kTile * 64];  // dS^T, for 64 queries each; rows are keys
  float staged[kWarps][kWarpFloats];  // of dQ, or of dK and then dV, on their way to global memory
  RowStates rows[kStages];
  uint64_t queries_full[kStages], queries_empty[kStages], keys_full[kStages], keys_empty[kStages], ds_full[kStages];
  uint64_t values_full[kValueStages], values_empty[kValueStages];
};

/// Of dQ's tile a warp has 16 rows of 64 columns: warp groups share its rows, or of heads of 128 its columns.
struct QueryPart {
  int row, column;
  __device__ explicit QueryPart(const Worker& w)
      : row(kWide ? w.warp * kWarpRows : w.warp_row()), column(kWide ? w.group * 64 : 0) {}
};

/// As GradArguments in backend/cuda/hopper_attention.cpp.
struct Arguments {
  float* rows;      // lse log2(e), then delta, each (B, H, T): kernels/attention_rows.cu
  float* dq_sum;    // (shared heads + blocks, T, D), in an order of its own
  int32_t* summed;  // (B, H, T / kQueries, kWarps): how many tiles of keys are in a warp's part of it, of shared heads; zero at first
  const int32_t* documents;  // (B, T): the first position of each one's document; ascending along T
  int32_t batch, time, heads;
  int32_t shared;         // of the B * H heads
  float exponent;         // log2(e) times the scale of scores
  float scale, dv_scale;  // of dQ and dK, and of dV
  Dropout dropout;
  float* dq_columns;  // (B, kWarps / kPanels, H, D), with kSums; (B, T / kTile, kWarps / kPanels, H, D) with documents
  float* dv_columns;  // (B, T / kTile, kWarps, H, D), with kDropout as well
  const int32_t* rank_at;  // where kRanks are several, and from there
  int32_t rank;
  f8e5m2* dqkv8;  // (B, T, 3C), with kFloat8, and its factor
  const float* factor;
  __device__ int tiles() const { return time / kTile; }  // of keys, as many as this rank has queries
  __device__ ZigZag zigzag() const { return {tiles(), rank}; }
  /// Of the keys of the same positions as queries i.
  __device__ int position(int i) const { return zigzag().position(i / kSplit); }
  __device__ Work work() const { return {batch * heads, shared, zigzag().positions()}; }
};

/// The tile of keys that a block works on. Of a head, the cheapest is the last.
__device__ inline int key_tile(const Work& work) { return work.tiles - 1 - work.rank; }

/// The tiles of queries that see keys of tile j: begin .. end - 1, by the documents of the head's sample. In a shared
/// head they come in the order in which the block before is through with them.
struct Steps {
  int begin, end;
  bool backwards;  // in turn, so that what was used last is used next
  __device__ Steps(int j, const ZigZag& zigzag, const int32_t* documents, bool shared)
      : begin(kCausal ? zigzag.first_from(j) * kSplit : 0), end(zigzag.rows * kSplit), backwards(!shared && j % 2) {
    int tiles = zigzag.rows * kSplit;
    if (kDocuments) end = kRanks > 1 ? begin : (j + 1) * kSplit;
    while (end < tiles && __ldg(documents + end * kQueries) < (j + 1) * kTile) ++end;
  }
  __device__ bool any() const { return kRanks == 1 || begin < end; }
  __device__ int queries(int step) const { return backwards ? end - 1 + begin - step : step; }
};

/// The first tile of keys that queries i see, which is the last one that adds to their dQ.
__device__ inline int first_keys(int i, const int32_t* documents) {
  return kDocuments ? __ldg(documents + i * kQueries) / kTile : 0;
}

/// One thread copies what the warps that compute need, in their order.
__device__ inline void produce(Shared& s, const TensorMap& qkv, const TensorMap& kv, const TensorMap& dout,
                               const Arguments& a) {
  Turn<kStages> query, key;
  Turn<kValueStages> value;
  int width = a.heads * kHeadDim;
  int64_t row_count = int64_t(a.batch) * a.heads * a.time;
  uint64_t once = used_once(), normally = used_normally();
  for (Work work = a.work(); work.more(); work.next()) {
    Head head(work.index, a.heads);
    int column = head.h * kHeadDim, j = key_tile(work);
    Steps steps(j, a.zigzag(), a.documents + int64_t(head.b) * a.time, work.is_shared());
    if (!steps.any()) continue;
    ZigZag::Place at = a.zigzag().place(j);
    int sample = at.rank * a.batch + head.b;
    uint64_t* full = &s.keys_full[key.stage];
    wait(&s.keys_empty[key.stage], key.parity ^ 1);
    arrive_expecting(full, sizeof(s.keys[0]));
    load_rows(s.keys[key.stage], kv, kFirstKey * width + column, at.row * kTile, sample, full, once);
    key.next();
    bool values_loaded = false;
    for (int step = steps.begin; step < steps.end; ++step) {
      int i = steps.queries(step);
      Queries& queries = s.queries[query.stage];
      RowStates& states = s.rows[query.stage];
      const float* rows = a.rows + int64_t(work.index) * a.time + i * kQueries;
      full = &s.queries_full[query.stage];
      wait(&s.queries_empty[query.stage], query.parity ^ 1);
      arrive_expecting(full, sizeof(Queries) + sizeof(RowStates));
      load_rows(queries.q, qkv, column, i * kQueries, head.b, full, normally);
      load_bytes(states.lse, rows, sizeof(states.lse), full);
      load_rows(queries.dout, dout, column, i * kQueries, head.b, full, normally);
      load_bytes(states.delta, rows + row_count, sizeof(states.delta), full);
      query.next();
      if (values_loaded) continue;
      // After the first queries: with one stage it may be in use for longer.
      full = &s.values_full[value.stage];
      wait(&s.values_empty[value.stage], value.parity ^ 1);
      arrive_expecting(full, sizeof(s.values[0]));
      load_rows(s.values[value.stage], kv, (kFirstKey + 1) * width + column, at.row * kTile, sample, full, once);
      value.next();
      values_loaded = true;
    }
  }
}

/// S^T, of queries i, becomes P^T. On the diagonal a key counts for the queries that do not come before it.
__device__ inline void to_probabilities(float (&s)[kScores], const float* lse, float scale, const Worker& w, int i,
                                        bool diagonal) {
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
    float2 l = *reinterpret_cast<const float2*>(lse + 8 * n + w.column);
    s[4 * n] = exp2_fast(fmaf(s[4 * n], scale, -l.x));
    s[4 * n + 1] = exp2_fast(fmaf(s[4 * n + 1], scale, -l.y));
    s[4 * n + 2] = exp2_fast(fmaf(s[4 * n + 2], scale, -l.x));
    s[4 * n + 3] = exp2_fast(fmaf(s[4 * n + 3], scale, -l.y));
  }
  if (!diagonal) return;
  int ahead = w.group * 64 + w.row - i % kSplit * kQueries - w.column;  // of the key over the query, for n = 0
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
    if (ahead > 8 * n) s[4 * n] = 0;
    if (ahead > 8 * n + 1) s[4 * n + 1] = 0;
    if (ahead + 8 > 8 * n) s[4 * n + 2] = 0;
    if (ahead + 8 > 8 * n + 1) s[4 * n + 3] = 0;
  }
}

/// A key does not count for queries of later documents.
__device__ inline void hide_other_documents(float (&p)[kScores], const int32_t* documents, int i, int j, const Worker& w) {
  const int32_t* begins = documents + i * kQueries;
  if (__ldg(begins + kQueries - 1) <= j * kTile) return;
  int key = j * kTile + w.warp_row() + w.lane / 4;
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
    int2 begin = __ldg(reinterpret_cast<const int2*>(begins + 8 * n + w.column));
    if (key < begin.x) p[4 * n] = 0;
    if (key < begin.y) p[4 * n + 1] = 0;
    if (key + 8 < begin.x) p[4 * n + 2] = 0;
    if (key + 8 < begin.y) p[4 * n + 3] = 0;
  }
}

/// What dropout leaves of P^T, in pairs.
__device__ inline void drop(const uint32_t (&p)[kScores / 2], uint32_t (&kept)[kScores / 2], const MatrixRandom& random,
                            int head, int i, int j, const Arguments& a, const Worker& w) {
  int query = a.position(i) * kTile + i % kSplit * kQueries, key = j * kTile + w.warp_row();
  uint32_t place = random.at(query + w.lane / 4, key + w.column);
  uint32_t matrix = matrix_in_whole(a.dropout.rng, uint32_t(head));
#pragma unroll
  for (int n = 0; n < kQueries / 8; n += 2)
    drop_pairs<true>(p + 2 * n, kept + 2 * n, random, a.dropout.threshold, matrix, place + 4 * n * random.columns);
}

/// A pair of dS^T = P^T (dP^T - delta), of which dropout has left `kept` of p.
__device__ inline uint32_t score_gradient(uint32_t p, uint32_t kept, const float* dp, const float2& delta) {
  float2 all = unpack(p, Element());
  if (!kDropout) return pack(all.x * (dp[0] - delta.x), all.y * (dp[1] - delta.y), Element());
  float2 some = unpack(kept, Element());
  return pack(fmaf(some.x, dp[0], -all.x * delta.x), fmaf(some.y, dp[1], -all.y * delta.y), Element());
}

/// P, `kept` and dS are pairs of elements, as products take them from registers.
__device__ inline void to_score_gradients(const uint32_t (&p)[kScores / 2], const uint32_t (&kept)[kScores / 2],
                                          const float (&dp)[kScores], const float* delta, const Worker& w,
                                          uint32_t (&ds)[kScores / 2]) {
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
    float2 d = *reinterpret_cast<const float2*>(delta + 8 * n + w.column);
    ds[2 * n] = score_gradient(p[2 * n], kept[2 * n], dp + 4 * n, d);
    ds[2 * n + 1] = score_gradient(p[2 * n + 1], kept[2 * n + 1], dp + 4 * n + 2, d);
  }
}

/// dS^T to shared memory, for the product that sums over the keys of both warp groups.
__device__ inline void share_score_gradients(Element (&to)[kQueries / 64][kTile * 64], const uint32_t (&ds)[kScores / 2],
                                             const Worker& w) {
  int key = w.warp_row() + w.lane % 16;
  uint32_t row = shared_address(to[0]) + key * 128;
#pragma unroll
  for (int k = 0; k < kQueries / 16; ++k) {
    int chunk = (2 * k % 8 + w.lane / 16) ^ (key % 8);
    store_matrices(row + k / 4 * (kTile * 128) + chunk * 16, ds[4 * k], ds[4 * k + 1], ds[4 * k + 2], ds[4 * k + 3]);
  }
}

__device__ inline void load_sum(const float* at, float (&x)[4]) {
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "l"(at)
               : "memory");
}

/// A tile whose part of dQ is still to come.
struct Pending {
  bool any = false;
  bool shared;       // the head
  bool first, last;  // of the tiles of keys that add to dQ of these queries
  bool turning;      // the queries are those of the tile before
  bool ends;         // the tile of keys
  int stage;         // of its keys
  int index, i, j;   // of the head, of its queries and keys
  /// How many tiles of keys have added before.
  __device__ int place(const Arguments& a) const {
    return (kCausal ? a.position(i) : a.tiles() - 1) - j;
  }
};

/// The warp's part of the sum of dQ.
__device__ inline float* part_of_sum(const Arguments& a, const Pending& tile, const Worker& w) {
  int64_t slot = tile.shared ? tile.index : a.shared + int(blockIdx.x);
  return a.dq_sum + ((slot * a.tiles() * kSplit + tile.i) * kWarps + w.group * 4 + w.warp) * kWarpFloats;
}
__device__ inline int32_t* count_of_sum(const Arguments& a, const Pending& tile, const Worker& w) {
  return a.summed + (int64_t(tile.index) * a.tiles() * kSplit + tile.i) * kWarps + w.group * 4 + w.warp;
}

/// One thread waits until what comes before in a shared head is summed.
__device__ inline void wait_for_sum(const Arguments& a, const Pending& tile, const Worker& w) {
  const int32_t* count = count_of_sum(a, tile, w);
  int before = tile.place(a);
  while (load_acquire(count) != before) {}
}
/// One thread tells that what the warp has added is summed.
__device__ inline void publish_sum(const Arguments& a, const Pending& tile, const Worker& w) {
  if (!tile.any || !tile.shared || tile.last) return;
  wait_copies<0>();
  store_release(count_of_sum(a, tile, w), tile.place(a) + 1);
}

/// What a warp has summed of 64 columns of a head leaves, in a row of `to`, and begins again.
__device__ inline void store_columns(float* to, const Arguments& a, const Head& head, int64_t row, int column,
                                     float2& sums, const Worker& w) {
  reinterpret_cast<float2*>(to + (row * a.heads + head.h) * kHeadDim + column)[w.lane] = sums;
  sums = {};
}

/// The warp's 16 rows of a product times `scale` to rows of dqkv, through shared memory that may be written again and
/// has them afterwards.
template <int N>
__device__ inline void write_gradients(const TensorMap& dqkv, void* staged, const float (&x)[N], const Arguments& a,
                                       float scale, int column, int row, int b, const Worker& w) {
  if constexpr (kFloat8) {
    auto* bytes = static_cast<uint8_t*>(staged);
#pragma unroll
    for (int panel = 0; panel < N / 32; ++panel) stage_rows(bytes + panel * kPanelBytes, x + 32 * panel, scale, w);
    __syncwarp();
    int64_t width = 3 * int64_t(a.heads) * kHeadDim;
    write_float8<N / 32>(a.dqkv8 + (int64_t(b) * a.time + row) * width + column, width, bytes, __ldg(a.factor), w);
  } else {
    write_rows(dqkv, staged, x, scale, column, row, b, w);
  }
}

/// Begins dQ = dS k for 64 queries.
__device__ inline void multiply_query_gradients(Shared& s, const Pending& tile, int buffer, const Worker& w,
                                                float (&dq)[32]) {
  uint64_t ds = matrix(s.ds[buffer][kWide ? 0 : w.group]);
  uint64_t k = matrix(s.keys[tile.stage] + QueryPart(w).column * kTile);
  hold(dq);
  begin_products();
#pragma unroll
  for (int x = 0; x < 8; ++x) multiply_columns(dq, ds + x * kDownRows, k + x * kDownRows, x > 0);
  commit_products();
}

/// Adds dQ to the warp's part of the sum; the last tile's goes with it to dqkv, and is summed over the warp's rows in
/// columns 2 lane and 2 lane + 1.
__device__ inline void add_query_gradients(Shared& s, const TensorMap& dqkv, const Pending& tile, float (&dq)[32],
                                           const Arguments& a, const Worker& w, float2& columns) {
  float* sum = part_of_sum(a, tile, w);
  float* staged = s.staged[w.group * 4 + w.warp];
  if (w.lane == 0) {
    // Additions to the same place must not overtake each other; only when turning is the one before of this place.
    wait_copies_read();
    if (tile.shared)
      wait_for_sum(a, tile, w);
    else if (tile.last || tile.turning)
      wait_copies<0>();
    else
      wait_copies<1>();
  }
  __syncwarp();
  if (tile.last) {
    if (!tile.first) {
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        float x[4];
        load_sum(sum + n * 128 + w.lane * 4, x);
#pragma unroll
        for (int e = 0; e < 4; ++e) dq[4 * n + e] += x[e];
      }
    }
    Head head(tile.index, a.heads);
    QueryPart part(w);
    write_gradients(dqkv, staged, dq, a, a.scale, head.h * kHeadDim + part.column, tile.i * kQueries + part.row,
                    head.b, w);
    if (kSums) add_to_columns(columns, staged, w);
    return;
  }
#pragma unroll
  for (int n = 0; n < 8; ++n)
    *reinterpret_cast<float4*>(staged + n * 128 + w.lane * 4) = {dq[4 * n], dq[4 * n + 1], dq[4 * n + 2],
                                                                 dq[4 * n + 3]};
  publish_stores();
  __syncwarp();
  if (w.lane != 0) return;
  if (tile.first)
    store_bytes(sum, staged, kWarpFloats * 4, used_again());
  else
    add_floats(sum, staged, kWarpFloats * 4, used_again());
  commit_copies();
}

/// The warp's rows of dK, then of dV, through what is otherwise for dQ. Those of dV are added to its columns, where
/// they are wanted.
__device__ inline void write_key_gradients(Shared& s, const TensorMap& dkv, const float (&dk)[kHeadFloats],
                                           const float (&dv)[kHeadFloats], const Arguments& a, const Head& head, int j,
                                           const Worker& w) {
  void* staged = s.staged[w.group * 4 + w.warp];
  ZigZag::Place at = a.zigzag().place(j);
  int row = at.row * kTile + w.warp_row(), sample = at.rank * a.batch + head.b;
  int width = a.heads * kHeadDim, column = kFirstKey * width + head.h * kHeadDim;
  if (w.lane == 0) wait_copies_read();
  __syncwarp();
  write_gradients(dkv, staged, dk, a, a.scale, column, row, sample, w);
  if (w.lane == 0) wait_copies_read();
  __syncwarp();
  write_gradients(dkv, staged, dv, a, kDropout ? a.dv_scale : 1, width + column, row, sample, w);
  if (!kSums || !kDropout) return;
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel) {
    float2 columns{};
    add_to_columns(columns, static_cast<uint8_t*>(staged) + panel * kPanelBytes, w);
    int64_t place = (int64_t(head.b) * a.tiles() + j) * kWarps + w.group * 4 + w.warp;
    store_columns(a.dv_columns, a, head, place, panel * 64, columns, w);
  }
}

__device__ inline void write_no_gradients(Shared& s, const TensorMap& dkv, const Arguments& a, const Head& head, int j,
                                          const Worker& w) {
  float zeros[kHeadFloats] = {};
  write_key_gradients(s, dkv, zeros, zeros, a, head, j, w);
}

/// Begins products of keys or values and queries along their rows: S^T = k q^T and dP^T = v dout^T.
__device__ inline void multiply_tiles(float (&d)[kScores], uint64_t a, uint64_t b) {
  hold(d);
  begin_products();
#pragma unroll
  for (int x = 0; x < kHeadSteps; ++x) multiply_rows(d, a + along_head(x, kTile), b + along_head(x, kQueries), x > 0);
  commit_products();
}

/// Begins d = a b or d += a b, a (64, kQueries) in registers, b (kQueries, D): dV and dK.
__device__ inline void multiply_pairs(float (&d)[kHeadFloats], const uint32_t (&a)[kScores / 2], uint64_t b, bool add) {
  hold(d);
  begin_products();
#pragma unroll
  for (int x = 0; x < kQueries / 16; ++x) multiply_columns(d, a + 4 * x, b + x * kDownRows, add || x > 0);
  commit_products();
}

/// The columns of a head's dQ are summed when its first tile of keys ends; with documents, each tile has some.
__device__ inline void end_columns(const Arguments& a, const Pending& tile, float2& columns, const Worker& w) {
  if (!kSums || !tile.ends || (!kDocuments && tile.j > 0)) return;
  Head head(tile.index, a.heads);
  int64_t place = kDocuments ? int64_t(head.b) * a.tiles() + tile.j : head.b;
  int64_t row = place * (kWarps / kPanels) + (kWide ? w.warp : w.group * 4 + w.warp);
  store_columns(a.dq_columns, a, head, row, QueryPart(w).column, columns, w);
}

/// What is pending at the end.
__device__ inline void add_last_query_gradients(Shared& s, const TensorMap& dqkv, const Pending& tile, int buffer,
                                                const Arguments& a, const Worker& w, float2& columns) {
  float dq[32];
  define(dq);
  multiply_query_gradients(s, tile, buffer, w, dq);
  wait_products<0>();
  hold(dq);
  add_query_gradients(s, dqkv, tile, dq, a, w, columns);
  end_columns(a, tile, columns, w);
}

__device__ inline void compute(Shared& s, const TensorMap& dqkv, const TensorMap& dkv, const Arguments& a) {
  Worker w;
  Turn<kStages> query, key, ds_turn;
  Turn<kValueStages> value;
  Pending pending{};
  float2 columns{};
  MatrixRandom random;
  if constexpr (kDropout) random = a.dropout.random(a.time * kRanks);
  int tiles = a.tiles(), ds_parity = 0;  // tiles of keys, of one rank
  float exponent = a.exponent;
  for (Work work = a.work(); work.more(); work.next()) {
    Head head(work.index, a.heads);
    int index = work.index, j = key_tile(work);
    const int32_t* documents = a.documents + int64_t(head.b) * a.time;
    Steps steps(j, a.zigzag(), documents, work.is_shared());
    if (!steps.any()) {
      write_no_gradients(s, dkv, a, head, j, w);
      continue;
    }
    float dk[kHeadFloats], dv[kHeadFloats];
    define(dk), define(dv);
    wait(&s.keys_full[key.stage], key.parity);
    uint64_t k = matrix(s.keys[key.stage] + w.group * 64 * 64), v = matrix(s.values[value.stage] + w.group * 64 * 64);
    for (int step = steps.begin; step < steps.end; ++step) {
      int i = steps.queries(step);
      bool fresh = step == steps.begin;
      constexpr int kPanel = kQueries * 128;
      uint64_t q = matrix(s.queries[query.stage].q, kPanel), dout = matrix(s.queries[query.stage].dout, kPanel);
      const RowStates& states = s.rows[query.stage];
      float p[kScores], dp[kScores], dq[32];
      define(p), define(dp), define(dq);
      uint32_t p_pairs[kScores / 2], kept_pairs[kScores / 2], ds[kScores / 2];
      wait(&s.queries_full[query.stage], query.parity);
      if (pending.any) wait(&s.ds_full[ds_turn.stage ^ 1], ds_parity);
      multiply_query_gradients(s, pending, ds_turn.stage ^ 1, w, dq);
      multiply_tiles(p, k, q);
      wait_products<1>();
      hold(dq);
      if (pending.any) {
        add_query_gradients(s, dqkv, pending, dq, a, w, columns);
        end_columns(a, pending, columns, w);
      }
      if (fresh) wait(&s.values_full[value.stage], value.parity);
      multiply_tiles(dp, v, dout);
      wait_products<1>();
      hold(p);
      int position = a.position(i);
      to_probabilities(p, states.lse, exponent, w, i, kCausal && position == j);
      if (kDocuments) hide_other_documents(p, documents, i, j, w);
#pragma unroll
      for (int x = 0; x < kScores / 2; ++x) p_pairs[x] = pack(p[2 * x], p[2 * x + 1], Element());
      if constexpr (kDropout) drop(p_pairs, kept_pairs, random, index, i, j, a, w);
      const uint32_t(&kept)[kScores / 2] = *(kDropout ? &kept_pairs : &p_pairs);
      wait_products<0>();
      hold(dp);
      if (step + 1 == steps.end) {
        __syncwarp();
        if (w.lane == 0) arrive(&s.values_empty[value.stage]);
      }
      multiply_pairs(dv, kept, dout, !fresh);
      to_score_gradients(p_pairs, kept, dp, states.delta, w, ds);
      share_score_gradients(s.ds[ds_turn.stage], ds, w);
      publish_stores();
      __syncwarp();
      if (w.lane == 0) arrive(&s.ds_full[ds_turn.stage]);
      multiply_pairs(dk, ds, q, !fresh);
      wait_products<0>();
      hold(dv);
      hold(dk);
      __syncwarp();
      if (w.lane == 0) {
        arrive(&s.queries_empty[query.stage]);
        if (fresh && pending.any) arrive(&s.keys_empty[pending.stage]);  // the keys before these
        publish_sum(a, pending, w);
      }
      pending = {true,      work.is_shared(),       kCausal ? position == j : j + 1 == tiles, j == first_keys(i, documents),
                 fresh,     step + 1 == steps.end,  key.stage,                         index,
                 i,         j};
      ds_parity = ds_turn.parity;
      ds_turn.next();
      query.next();
    }
    write_key_gradients(s, dkv, dk, dv, a, head, j, w);
    key.next();
    value.next();
  }
  if (kRanks == 1 || pending.any) {
    wait(&s.ds_full[ds_turn.stage ^ 1], ds_parity);
    add_last_query_gradients(s, dqkv, pending, ds_turn.stage ^ 1, a, w, columns);
  }
  if (w.lane != 0) return;
  wait_copies<0>();
  publish_sum(a, pending, w);
}

}  // namespace tokamak

// Grid: at most as many blocks as run at a time, each with work. kv and dkv are what has keys and values, and what has
// their gradients: qkv and dqkv unless kRanks are several. The boxes of qkv and dout are (kQueries, 64), those of kv
// (128, 64), those of dqkv and dkv (16, 64).
extern "C" __global__ void __launch_bounds__(384, 1)
    attention_grad(const __grid_constant__ tokamak::TensorMap qkv, const __grid_constant__ tokamak::TensorMap kv,
                   const __grid_constant__ tokamak::TensorMap dout, const __grid_constant__ tokamak::TensorMap dqkv,
                   const __grid_constant__ tokamak::TensorMap dkv, tokamak::Arguments a) {
  using namespace tokamak;
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      init_barrier(&s.queries_full[i], 1);
      init_barrier(&s.keys_full[i], 1);
      init_barrier(&s.queries_empty[i], kWarps);
      init_barrier(&s.keys_empty[i], kWarps);
      init_barrier(&s.ds_full[i], kWarps);
    }
    for (int i = 0; i < kValueStages; ++i) init_barrier(&s.values_full[i], 1), init_barrier(&s.values_empty[i], kWarps);
    publish_barriers();
  }
  __syncthreads();
  begin_kernel();
  if constexpr (kRanks > 1) a.rank = __ldg(a.rank_at);
  if (threadIdx.x < 128) {
    give_registers<kCopyRegisters>();
    if (threadIdx.x == 0) produce(s, qkv, kv, dout, a);
  } else {
    take_registers<kComputeRegisters>();
    compute(s, dqkv, dkv, a);
  }
}
