// Attention on Hopper's tensor cores, for heads of 64 and of 128, with online softmax (Dao et al., "FlashAttention",
// 2022; Shah et al., "FlashAttention-3", 2024, for the division of labour).
//
// A block works on one tile of 256 queries (128 of heads of 128) after the other, of a head that it shares with others
// or has for itself (Work), going through tiles of 64 keys (128). One thread of the first warp group copies tiles
// ahead. The four others (two) hold 64 queries each: the scores of the next tile and the output of this one are
// multiplied while the softmax is computed, across the borders of queries and heads. A warp group leaves out the tiles
// of keys that its queries do not see: fewer than there are stages, less two for what it holds, as a tile's queries
// follow each other (also where kRanks are several).
#include "backend/cuda/kernels/attention_hopper.cuh"

namespace tokamak {

constexpr bool kWide = kHeadDim == 128;
constexpr int kGroups = kWide ? 2 : 4, kWarps = 4 * kGroups;  // that compute
constexpr int kKeys = kWide ? 128 : 64, kQueries = 64 * kGroups;  // rows of a tile
constexpr int kKeyStages = kWide ? 2 : 6, kQueryStages = 2;
// Of a thread of the first warp group, and of one of the others.
constexpr int kCopyRegisters = kWide ? 24 : 32, kComputeRegisters = kWide ? 240 : 112;

struct Shared {
  Element keys[kKeyStages][kKeys * kHeadDim], values[kKeyStages][kKeys * kHeadDim];
  Element queries[kQueryStages][kQueries * kHeadDim];
  Element staged[kWarps][kWarpRows * kHeadDim];  // of the output, on its way to global memory
  uint64_t keys_full[kKeyStages], keys_empty[kKeyStages], values_full[kKeyStages], values_empty[kKeyStages];
  uint64_t queries_full[kQueryStages], queries_empty[kQueryStages];
};

/// As ForwardArguments in backend/cuda/hopper_attention.cpp.
struct Arguments {
  float* lse;                // (B, H, T)
  const int32_t* documents;  // (B, T): the first position of each one's document; ascending along T
  int32_t batch, time, heads;
  int32_t shared;  // of the B * H heads
  float scale;
  Dropout dropout;
  const int32_t* rank_at;  // where kRanks are several, and from there
  int32_t rank;
  f8e4m3* out8;  // (B, T, C), with kFloat8: the output as a cast behind it would give it, and the factor of that
  const float* factor;
  __device__ Work work() const { return {batch * heads, shared, (time + kQueries - 1) / kQueries}; }
  /// In tiles of kKeys rows.
  __device__ ZigZag zigzag() const { return {time / kKeys, rank}; }
  __device__ int document(int b, int t) const { return __ldg(documents + int64_t(b) * time + min(t, time - 1)); }
  /// The first tile of keys that any of the queries sees.
  __device__ int first_key(int b, int i) const { return kDocuments ? document(b, i * kQueries) / kKeys : 0; }
  /// The last tile of keys that the queries of `group` see; with kCausal, that of their own positions.
  __device__ int last_key(int i, int group) const {
    int all = time / kKeys - 1;
    return kCausal ? zigzag().position(min((i * kQueries + group * 64) / kKeys, all)) : all;
  }
};

/// One thread copies what the warps that compute need, in their order.
__device__ inline void produce(Shared& s, const TensorMap& q, const TensorMap& kv, const Arguments& a) {
  Turn<kQueryStages> query;
  Turn<kKeyStages> key;
  int width = a.heads * kHeadDim;
  uint64_t once = used_once(), normally = used_normally();
  for (Work work = a.work(); work.more(); work.next()) {
    Head head(work.index, a.heads);
    int column = head.h * kHeadDim, i = work.rank;
    uint64_t* full = &s.queries_full[query.stage];
    wait(&s.queries_empty[query.stage], query.parity ^ 1);
    arrive_expecting(full, sizeof(s.queries[0]));
    load_rows(s.queries[query.stage], q, column, i * kQueries, head.b, full, once);
    query.next();
    for (int j = a.first_key(head.b, i); j <= a.last_key(i, kGroups - 1); ++j) {
      ZigZag::Place at = a.zigzag().place(j);
      int sample = at.rank * a.batch + head.b;
      full = &s.keys_full[key.stage];
      wait(&s.keys_empty[key.stage], key.parity ^ 1);
      arrive_expecting(full, sizeof(s.keys[0]));
      load_rows(s.keys[key.stage], kv, kFirstKey * width + column, at.row * kKeys, sample, full, normally);
      full = &s.values_full[key.stage];
      wait(&s.values_empty[key.stage], key.parity ^ 1);
      arrive_expecting(full, sizeof(s.values[0]));
      load_rows(s.values[key.stage], kv, (kFirstKey + 1) * width + column, at.row * kKeys, sample, full, normally);
      key.next();
    }
  }
}

/// A tile of scores of a warp group: which it is, and where its operands lie.
struct Tile {
  Work work;   // a head's queries
  int j;       // keys
  int begin;   // the first j
  Turn<kQueryStages> query;
  Turn<kKeyStages> key;

  __device__ int i() const { return work.rank; }
  __device__ bool first() const { return j == begin; }
};

/// Goes on to the group's next tile; those between that it does not see are given back.
__device__ inline void advance(Tile& tile, Shared& s, const Arguments& a, const Worker& w) {
  tile.key.next();
  if (++tile.j <= a.last_key(tile.i(), w.group)) return;
  for (; tile.j <= a.last_key(tile.i(), kGroups - 1); ++tile.j) {
    wait(&s.keys_full[tile.key.stage], tile.key.parity);
    wait(&s.values_full[tile.key.stage], tile.key.parity);
    if (w.lane == 0) arrive(&s.keys_empty[tile.key.stage]), arrive(&s.values_empty[tile.key.stage]);
    tile.key.next();
  }
  tile.query.next();
  tile.work.next();
  tile.begin = tile.j = tile.work.more() ? a.first_key(tile.work.index / a.heads, tile.i()) : 0;
}

__device__ inline float minus_infinity() { return -HUGE_VALF; }

/// Of the two rows of scores that a thread holds.
struct SoftmaxState {
  float max[2], sum[2];  // of the scores; of the thread's part of the probabilities, relative to max
};

__device__ inline SoftmaxState fresh_state() { return {{minus_infinity(), minus_infinity()}, {0, 0}}; }

__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/// On the diagonal: a query does not see the keys after it.
__device__ inline void hide_later_keys(float (&s)[kKeys / 2], const Worker& w) {
  int ahead = w.column - w.group * 64 % kKeys - w.row;  // of the key over the query, for n = 0
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (ahead + 8 * n + e % 2 - e / 2 * 8 > 0) s[4 * n + e] = minus_infinity();
}

/// The positions at which the documents of the thread's two queries begin.
struct Documents {
  int begin[2];
  __device__ Documents(const Arguments& a, const Tile& tile, const Worker& w) {
    for (int r = 0; r < 2; ++r)
      begin[r] = kDocuments ? a.document(tile.work.index / a.heads, tile.i() * kQueries + w.group * 64 + w.row + 8 * r) : 0;
  }
};

/// Keys before a query's document get a score so low that their probabilities vanish once one that it sees comes. Not
/// minus infinity: a whole tile may be hidden from a query.
__device__ inline void hide_other_documents(float (&s)[kKeys / 2], const Documents& documents, int j, const Worker& w) {
  int key = j * kKeys + w.column;
  if (key >= documents.begin[1]) return;  // the later query's begins later, if at all
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (key + 8 * n + e % 2 < documents.begin[e / 2]) s[4 * n + e] = -1e6f;
}

/// Scores become probabilities relative to the rows' maxima so far; `rescale` is what earlier ones shrink by.
__device__ inline void to_probabilities(float (&s)[kKeys / 2], float exponent, SoftmaxState& state, float (&rescale)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float most[2] = {fmaxf(s[2 * r], s[2 * r + 1]), fmaxf(s[4 + 2 * r], s[5 + 2 * r])}, sum[2] = {0, 0};
#pragma unroll
    for (int n = 2; n < kKeys / 8; ++n) most[n % 2] = fmaxf(most[n % 2], fmaxf(s[4 * n + 2 * r], s[4 * n + 2 * r + 1]));
    float all = fmaxf(state.max[r], quad_max(fmaxf(most[0], most[1])));
    rescale[r] = exp2_fast((state.max[r] - all) * exponent);
    state.max[r] = all;
    float offset = -all * exponent;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[4 * n + 2 * r + e];
        x = exp2_fast(fmaf(x, exponent, offset));
        sum[e] += x;
      }
    state.sum[r] = fmaf(state.sum[r], rescale[r], sum[0] + sum[1]);
  }
}

/// Dropout of a tile's probabilities, in pairs.
__device__ inline void drop(uint32_t (&p)[kKeys / 4], const MatrixRandom& random, const Tile& tile, const Arguments& a,
                            const Worker& w) {
  int first = kRanks > 1 ? a.last_key(tile.i(), w.group) * kKeys + w.warp_row() % kKeys : tile.i() * kQueries + w.warp_row();
  uint32_t place = random.at(first + w.lane / 4, tile.j * kKeys + w.column);
  uint32_t matrix = matrix_in_whole(a.dropout.rng, uint32_t(tile.work.index));
#pragma unroll
  for (int n = 0; n < kKeys / 8; n += 2)
    drop_pairs<false>(p + 2 * n, p + 2 * n, random, a.dropout.threshold, matrix, place + 2 * n);
}

/// What a warp writes when all keys of its queries are through.
__device__ inline void write_output(Shared& s, const TensorMap& out, const Arguments& a, const Tile& tile,
                                    const SoftmaxState& state, float (&o)[kHeadDim / 2], const Worker& w) {
  Head head(tile.work.index, a.heads);
  int row = tile.i() * kQueries + w.warp_row();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float sum = quad_sum(state.sum[r]), inverse = (kDropout ? a.dropout.kept : 1) / sum;
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) o[4 * n + 2 * r] *= inverse, o[4 * n + 2 * r + 1] *= inverse;
    int t = row + w.lane / 4 + 8 * r;
    if (w.lane % 4 == 0 && t < a.time)
      a.lse[int64_t(tile.work.index) * a.time + t] = fmaf(state.max[r], a.scale, logf(sum));
  }
  void* staged = s.staged[w.group * 4 + w.warp];
  if (w.lane == 0) wait_copies_read();
  __syncwarp();
  write_rows(out, staged, o, 1, head.h * kHeadDim, row, head.b, w);
  if constexpr (kFloat8) {
    if (row >= a.time) return;
    int64_t width = int64_t(a.heads) * kHeadDim;
    f8e4m3* to = a.out8 + (int64_t(head.b) * a.time + row) * width + head.h * kHeadDim;
    write_float8<kPanels>(to, width, staged, __ldg(a.factor), w);
  }
}

__device__ inline void wait_for(Shared& s, const Tile& tile) {
  if (tile.first()) wait(&s.queries_full[tile.query.stage], tile.query.parity);
  wait(&s.keys_full[tile.key.stage], tile.key.parity);
}

/// Begins S = q k^T for 64 queries.
__device__ inline void multiply_scores(Shared& s, const Tile& tile, const Worker& w, float (&scores)[kKeys / 2]) {
  uint64_t q = matrix(s.queries[tile.query.stage] + w.group * 64 * 64), k = matrix(s.keys[tile.key.stage]);
#pragma unroll
  for (int x = 0; x < kHeadSteps; ++x)
    multiply_rows(scores, q + along_head(x, kQueries), k + along_head(x, kKeys), x > 0);
  commit_products();
}

/// The scores of a tile are multiplied.
__device__ inline void give_keys_back(Shared& s, const Tile& tile, const Worker& w) {
  __syncwarp();
  if (w.lane == 0) arrive(&s.keys_empty[tile.key.stage]);
}

__device__ inline void compute(Shared& s, const TensorMap& out, const Arguments& a) {
  Worker w;
  Tile tile{a.work(), 0, 0, {}, {}};
  tile.begin = tile.j = a.first_key(tile.work.index / a.heads, tile.i());
  Documents documents(a, tile, w);
  MatrixRandom random;
  if constexpr (kDropout) random = a.dropout.random(a.time * kRanks);
  SoftmaxState state = fresh_state(), done = state;
  float exponent = a.scale * kLog2E;
  float scores[kKeys / 2], o[kHeadDim / 2], rescale[2];
  define(scores), define(o);
  uint32_t p[kKeys / 4];
  wait_for(s, tile);
  hold(scores);
  begin_products();
  multiply_scores(s, tile, w, scores);
  wait_products<0>();
  hold(scores);
  give_keys_back(s, tile, w);
  if (kDocuments) hide_other_documents(scores, documents, tile.j, w);
  if (kCausal && tile.j == a.last_key(tile.i(), w.group)) hide_later_keys(scores, w);
  to_probabilities(scores, exponent, state, rescale);
  while (true) {
    Tile next = tile;
    advance(next, s, a, w);
    bool more = next.work.more();
#pragma unroll
    for (int x = 0; x < kKeys / 4; ++x) p[x] = pack(scores[2 * x], scores[2 * x + 1], Element());
    if constexpr (kDropout) drop(p, random, tile, a, w);
    wait(&s.values_full[tile.key.stage], tile.key.parity);
    if (more) wait_for(s, next);  // without more, scores of anything are multiplied and left
    hold(scores);
    hold(o);
    begin_products();
    multiply_scores(s, next, w, scores);
    uint64_t v = matrix(s.values[tile.key.stage], kKeys * 128);
#pragma unroll
    for (int x = 0; x < kKeys / 16; ++x) multiply_columns(o, p + 4 * x, v + x * kDownRows, !tile.first() || x > 0);
    commit_products();
    wait_products<1>();
    hold(scores);
    if (more) give_keys_back(s, next, w);
    if (next.first()) {
      done = state;
      state = fresh_state();
      if (more) documents = Documents(a, next, w);
    }
    if (kDocuments) hide_other_documents(scores, documents, next.j, w);
    if (kCausal && next.j == a.last_key(next.i(), w.group)) hide_later_keys(scores, w);
    to_probabilities(scores, exponent, state, rescale);
    wait_products<0>();
    hold(o);
    __syncwarp();
    if (w.lane == 0) {
      arrive(&s.values_empty[tile.key.stage]);
      if (next.first()) arrive(&s.queries_empty[tile.query.stage]);
    }
    if (next.first()) write_output(s, out, a, tile, done, o, w);
    if (!more) break;
    if (__any_sync(0xffffffffu, rescale[0] < 1 || rescale[1] < 1)) {
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) o[4 * n + e] *= rescale[e / 2];
    }
    tile = next;
  }
  if (w.lane == 0) wait_copies<0>();
}

}  // namespace tokamak

// Grid: at most as many blocks as run at a time, each with work. The boxes are (kQueries, 64) of q, (kKeys, 64) of k
// and v, (16, 64) of out.
extern "C" __global__ void __launch_bounds__(128 + tokamak::kGroups * 128, 1)
    attention(const __grid_constant__ tokamak::TensorMap q, const __grid_constant__ tokamak::TensorMap kv,
              const __grid_constant__ tokamak::TensorMap out, tokamak::Arguments a) {
  using namespace tokamak;
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kKeyStages; ++i) {
      init_barrier(&s.keys_full[i], 1), init_barrier(&s.keys_empty[i], kWarps);
      init_barrier(&s.values_full[i], 1), init_barrier(&s.values_empty[i], kWarps);
    }
    for (int i = 0; i < kQueryStages; ++i)
      init_barrier(&s.queries_full[i], 1), init_barrier(&s.queries_empty[i], kWarps);
    publish_barriers();
  }
  __syncthreads();
  begin_kernel();
  if constexpr (kRanks > 1) a.rank = __ldg(a.rank_at);
  if (threadIdx.x < 128) {
    give_registers<kCopyRegisters>();
    if (threadIdx.x == 0) produce(s, q, kv, a);
  } else {
    take_registers<kComputeRegisters>();
    compute(s, out, a);
  }
}
