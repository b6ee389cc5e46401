// Attention forward: a block of queries against blocks of keys, with an online softmax (Dao et al., "FlashAttention",
// 2022). T x T is never stored. Grid: (blocks of queries, H, B).
#include "backend/cuda/kernels/attention.cuh"

namespace tokamak {

// The score of what a query does not see: minus infinity.
__device__ inline float hidden_score() { return __int_as_float(0xff800000); }

// Takes a block of scores into the softmax of its rows: the scores become probabilities relative to the new `top`, and
// what was summed under the old one is scaled down. A row that has seen nothing yet has no `top` to be relative to.
__device__ inline void add_to_softmax(Scores& x, float* top, float* sum, Rows& out) {
#pragma unroll
  for (int r = 0; r < kPerThread; ++r) {
    float largest = top[r];
    for (int s = 0; s < kPerThread; ++s) largest = fmaxf(largest, x[r][s]);
    for (int m = 8; m > 0; m /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, m));
    float shift = kDocuments && largest == hidden_score() ? 0 : largest;
    float shrink = expf(top[r] - shift), added = 0;
    for (int s = 0; s < kPerThread; ++s) {
      x[r][s] = expf(x[r][s] - shift);
      added += x[r][s];
    }
    for (int m = 8; m > 0; m /= 2) added += __shfl_xor_sync(0xffffffffu, added, m);
    top[r] = largest;
    sum[r] = fmaf(sum[r], shrink, added);
    for (int g = 0; g < kGroups; ++g)
      for (int e = 0; e < 4; ++e) out[r][g][e] *= shrink;
  }
}

}  // namespace tokamak

extern "C" __global__ void __launch_bounds__(256)
    attention(const tokamak::Element* __restrict__ qkv, const tokamak::Element* __restrict__ kv,
              tokamak::Element* __restrict__ out, float* __restrict__ lse, tokamak::Arguments a) {
  using namespace tokamak;
  begin_kernel();
  extern __shared__ float4 shared[];
  float *q = &shared[0].x, *tile = q + kTile, *p = tile + kTile;
  const Head head(a);
  const Dropout dropout(a, head);
  int first = int(gridDim.x - 1 - blockIdx.x) * kBlock;  // causal: the longest rows first
  int last = last_keys(a, head, first), count = head.zigzag.positions();
  float top[kPerThread], sum[kPerThread];
  for (int r = 0; r < kPerThread; ++r) top[r] = hidden_score(), sum[r] = 0;
  Rows rows;
  clear(rows);
  load_tile(q, rows_of(qkv, head.q, head.packed), first, a.time);
  for (int keys = first_keys(a, first); keys <= last; ++keys) {
    __syncthreads();
    load_tile(tile, keys_of(kv, head.k, head), keys * kBlock, count);
    __syncthreads();
    Scores x;
    dot_tiles(q, tile, x);
    // A row behind the last query sees what that one sees, as a row that sees nothing has no softmax.
    for (int r = 0; r < kPerThread; ++r)
      for (int s = 0; s < kPerThread; ++s) {
        int i = min(first + int(threadIdx.y) + 16 * r, a.time - 1), j = keys * kBlock + int(threadIdx.x) + 16 * s;
        x[r][s] = sees(a, head, i, j) ? x[r][s] * a.scale : hidden_score();
      }
    add_to_softmax(x, top, sum, rows);
    for (int r = 0; r < kPerThread; ++r)
      for (int s = 0; s < kPerThread; ++s) {
        int i = first + int(threadIdx.y) + 16 * r, j = keys * kBlock + int(threadIdx.x) + 16 * s;
        p[score_at(r, s)] = x[r][s] * dropout.factor(i, j);
      }
    __syncthreads();
    load_tile(tile, keys_of(kv, head.v, head), keys * kBlock, count);
    __syncthreads();
    add_product(p, tile, rows);
  }
  float factor[kPerThread];
  for (int r = 0; r < kPerThread; ++r) {
    factor[r] = 1 / sum[r];
    int i = first + int(threadIdx.y) + 16 * r;
    if (threadIdx.x == 0 && i < a.time) lse[head.lse + i] = top[r] + logf(sum[r]);
  }
  store_rows(rows_of(out, head.out, head.width), first, a.time, rows, factor);
}
