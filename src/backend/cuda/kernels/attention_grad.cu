// The gradient of attention. With P the probabilities, computed again from q, k and lse, F dropout's factors, and
// dP = dout v^T:  dV = (P F)^T dout,  dS = P (dP F - delta),  dQ = scale dS k,  dK = scale dS^T q,  where
// delta = sum of out * dout over a row (Dao et al., "FlashAttention", 2022). Each element of dqkv is summed by one
// thread in a fixed order: one kernel for dQ, by blocks of queries, and one for dK and dV, by blocks of keys.
#include "backend/cuda/kernels/attention.cuh"

namespace tokamak {

// What a pair of query i and key j needs of its row.
struct RowState {
  float lse, delta;
  __device__ RowState(const Arguments& a, const Head& head, const float* all_lse, const float* all_delta, int i) {
    int row = min(i, a.time - 1);
    lse = all_lse[head.lse + row];
    delta = all_delta[head.lse + row];
  }
  __device__ float probability(const Arguments& a, const Head& head, float score, int i, int j) const {
    return sees(a, head, i, j) ? expf(fmaf(score, a.scale, -lse)) : 0.0f;
  }
};

}  // namespace tokamak

// delta (B, H, T): a warp per row. Grid: enough blocks of 8 warps.
extern "C" __global__ void __launch_bounds__(256)
    attention_delta(const tokamak::Element* __restrict__ out, const tokamak::Element* __restrict__ dout,
                    float* __restrict__ delta, int64_t rows, tokamak::Arguments a) {
  using namespace tokamak;
  begin_kernel();
  int64_t row = int64_t(blockIdx.x) * 8 + threadIdx.x / 32;  // (b * T + t) * H + h, as the rows lie in out
  if (row >= rows) return;
  int lane = threadIdx.x % 32;
  float sum = 0;
  for (int c = lane; c < kHeadDim; c += 32)
    sum = fmaf(to_float(out[row * kHeadDim + c]), to_float(dout[row * kHeadDim + c]), sum);
  for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, m);
  int64_t h = row % a.heads, t = row / a.heads % a.time, b = row / a.heads / a.time;
  if (lane == 0) delta[(b * a.heads + h) * a.time + t] = sum;
}

// Grid: (blocks of queries, H, B).
extern "C" __global__ void __launch_bounds__(256)
    attention_grad_q(const tokamak::Element* __restrict__ qkv, const tokamak::Element* __restrict__ kv,
                     const float* __restrict__ lse, const tokamak::Element* __restrict__ dout,
                     const float* __restrict__ delta, tokamak::Element* __restrict__ dq_rows, tokamak::Arguments a) {
  using namespace tokamak;
  begin_kernel();
  extern __shared__ float4 shared[];
  float *q = &shared[0].x, *dy = q + kTile, *k = dy + kTile, *v = k + kTile, *ds = v + kTile;
  const Head head(a);
  const Dropout dropout(a, head);
  int first = int(gridDim.x - 1 - blockIdx.x) * kBlock;
  int last = last_keys(a, head, first), count = head.zigzag.positions();
  Rows dq;
  clear(dq);
  load_tile(q, rows_of(qkv, head.q, head.packed), first, a.time);
  load_tile(dy, rows_of(dout, head.out, head.width), first, a.time);
  for (int keys = first_keys(a, first); keys <= last; ++keys) {
    __syncthreads();
    load_tile(k, keys_of(kv, head.k, head), keys * kBlock, count);
    load_tile(v, keys_of(kv, head.v, head), keys * kBlock, count);
    __syncthreads();
    Scores x, dp;
    dot_tiles(q, k, x);
    dot_tiles(dy, v, dp);
    for (int r = 0; r < kPerThread; ++r) {
      int i = first + int(threadIdx.y) + 16 * r;
      RowState row(a, head, lse, delta, i);
      for (int s = 0; s < kPerThread; ++s) {
        int j = keys * kBlock + int(threadIdx.x) + 16 * s;
        float p = row.probability(a, head, x[r][s], i, j);
        ds[score_at(r, s)] = p * (dp[r][s] * dropout.factor(i, j) - row.delta);
      }
    }
    __syncthreads();
    add_product(ds, k, dq);
  }
  float factor[kPerThread];
  for (int r = 0; r < kPerThread; ++r) factor[r] = a.scale;
  store_rows(rows_of(dq_rows, head.dq, head.dq_width), first, a.time, dq, factor);
}

// Grid: (blocks of keys, H, B). Scores are transposed: a thread's rows are keys.
extern "C" __global__ void __launch_bounds__(256)
    attention_grad_kv(const tokamak::Element* __restrict__ qkv, const tokamak::Element* __restrict__ kv,
                      const float* __restrict__ lse, const tokamak::Element* __restrict__ dout,
                      const float* __restrict__ delta, tokamak::Element* __restrict__ dkv, tokamak::Arguments a) {
  using namespace tokamak;
  begin_kernel();
  extern __shared__ float4 shared[];
  float *k = &shared[0].x, *v = k + kTile, *q = v + kTile, *dy = q + kTile, *p = dy + kTile;
  const Head head(a);
  const Dropout dropout(a, head);
  int first = int(blockIdx.x) * kBlock, count = head.zigzag.positions();
  Rows dk, dv;
  clear(dk), clear(dv);
  load_tile(k, keys_of(kv, head.k, head), first, count);
  load_tile(v, keys_of(kv, head.v, head), first, count);
  int from = kCausal ? head.zigzag.first_from(first) / kBlock : first_keys(a, first);
  for (int queries = from; queries <= (a.time - 1) / kBlock; ++queries) {
    // Documents of these and of all later queries begin behind the keys.
    if (kDocuments && document_of(a, queries * kBlock) >= first + kBlock) break;
    __syncthreads();
    load_tile(q, rows_of(qkv, head.q, head.packed), queries * kBlock, a.time);
    load_tile(dy, rows_of(dout, head.out, head.width), queries * kBlock, a.time);
    __syncthreads();
    Scores x, ds;
    dot_tiles(k, q, x);
    dot_tiles(v, dy, ds);
    for (int s = 0; s < kPerThread; ++s) {
      int i = queries * kBlock + int(threadIdx.x) + 16 * s;
      RowState row(a, head, lse, delta, i);
      for (int r = 0; r < kPerThread; ++r) {
        int j = first + int(threadIdx.y) + 16 * r;
        float probability = row.probability(a, head, x[r][s], i, j), keep = dropout.factor(i, j);
        ds[r][s] = probability * (ds[r][s] * keep - row.delta);
        p[score_at(r, s)] = probability * keep;
      }
    }
    __syncthreads();
    add_product(p, dy, dv);
    __syncthreads();
    for (int r = 0; r < kPerThread; ++r)
      for (int s = 0; s < kPerThread; ++s) p[score_at(r, s)] = ds[r][s];
    __syncthreads();
    add_product(p, q, dk);
  }
  float factor[kPerThread], one[kPerThread];
  for (int r = 0; r < kPerThread; ++r) factor[r] = a.scale, one[r] = 1;
  store_rows(keys_of(dkv, head.k, head), first, count, dk, factor);
  store_rows(keys_of(dkv, head.v, head), first, count, dv, one);
}
