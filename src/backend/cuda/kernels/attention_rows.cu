// What attention's gradient (kernels/attention_grad_hopper.cu) needs of each row: lse log2(e), and delta, the sum of
// out * dout; and dQ's counters, zero. The text before this says what kernels/attention_hopper.cuh wants.
// Legend: B batch, T time, H heads, D head_dim.
#include "backend/cuda/kernels/attention_hopper.cuh"

namespace tokamak {

constexpr int kTile = 128;  // rows
constexpr int kRowLanes = kHeadDim / 8, kBlockRows = 256 / kRowLanes;  // of a row, of a block
constexpr int kCountedRows = kHeadDim == 128 ? 8 : 16;  // a counter's: a tile's queries over its warps

/// As RowArguments in backend/cuda/hopper_attention.cpp.
struct Rows {
  float* to;        // lse log2(e), then delta's share, each (B, H, T)
  int32_t* summed;  // (B, H, T / kCountedRows)
  int32_t batch, time, heads;
  float share;  // of delta: 1 / dropout's factor
  __device__ void begin_sum(int64_t row) const {
    if (row % kCountedRows == 0) summed[row / kCountedRows] = 0;
  }
};

using Eight = Vector<Element, 8>;

/// delta of a row of which each of kRowLanes lanes has eight columns.
__device__ inline float row_product(const Eight& out, const Eight& dout) {
  float sum = 0;
  for (int e = 0; e < 8; ++e) sum = fmaf(to_float(out[e]), to_float(dout[e]), sum);
  for (int m = kRowLanes / 2; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, m);
  return sum;
}

/// Columns of D that the threads of a block of 256 have summed, eight for each of kRowLanes lanes.
__device__ inline void add_over_block(float (&columns)[8], float* to) {
  constexpr int kRowWarps = 8;
  __shared__ float sums[kRowWarps][kHeadDim];
  int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    for (int m = kRowLanes; m < 32; m *= 2) columns[e] += __shfl_xor_sync(0xffffffffu, columns[e], m);
    if (lane < kRowLanes) sums[threadIdx.x / 32][lane * 8 + e] = columns[e];
  }
  __syncthreads();
  if (threadIdx.x >= kHeadDim) return;
  float sum = 0;
  for (int warp = 0; warp < kRowWarps; ++warp) sum += sums[warp][threadIdx.x];
  to[threadIdx.x] = sum;
}

}  // namespace tokamak

// What the scores of a row need. kRowLanes lanes a row of out (B, T, H, D). Grid: enough blocks of kBlockRows rows.
extern "C" __global__ void __launch_bounds__(256)
    attention_rows(const tokamak::Element* __restrict__ out, const tokamak::Element* __restrict__ dout,
                   const float* __restrict__ lse, tokamak::Rows a) {
  using namespace tokamak;
  begin_kernel();
  int64_t row = int64_t(blockIdx.x) * kBlockRows + threadIdx.x / kRowLanes, count = int64_t(a.batch) * a.heads * a.time;
  if (row >= count) return;  // count is a multiple of 32
  int64_t at = row * kHeadDim + threadIdx.x % kRowLanes * 8;
  Eight y = *reinterpret_cast<const Eight*>(out + at), dy = *reinterpret_cast<const Eight*>(dout + at);
  float sum = row_product(y, dy);
  if (threadIdx.x % kRowLanes != 0) return;
  int64_t h = row % a.heads, t = row / a.heads % a.time, b = row / a.heads / a.time;
  int64_t to = (b * a.heads + h) * a.time + t;
  a.to[to] = lse[to] * kLog2E;
  a.to[count + to] = sum * a.share;
  a.begin_sum(to);
}

// The same, and the sums of dout over tiles of positions, for kernels/attention_column_sums.cu: dout_columns is
// (B * T / 128, H, D). A block works on the rows that one head has in a tile, kRowLanes lanes on each of some. Grid:
// B * T / 128 * H blocks.
extern "C" __global__ void __launch_bounds__(256)
    attention_rows_and_sums(const tokamak::Element* __restrict__ out, const tokamak::Element* __restrict__ dout,
                            const float* __restrict__ lse, tokamak::Rows a, float* __restrict__ dout_columns) {
  using namespace tokamak;
  begin_kernel();
  constexpr int kRows = kTile / kBlockRows;
  int slot = int(threadIdx.x) / kRowLanes, vector = int(threadIdx.x) % kRowLanes, tiles = a.time / kTile;
  int tile = int(blockIdx.x) / a.heads, h = int(blockIdx.x) % a.heads, b = tile / tiles;
  int64_t from = ((int64_t(tile) * kTile + slot) * a.heads + h) * kHeadDim + vector * 8;
  int64_t to = (int64_t(b) * a.heads + h) * a.time + tile % tiles * kTile;
  int64_t count = int64_t(a.batch) * a.heads * a.time;
  float row_lse = threadIdx.x < kTile ? lse[to + threadIdx.x] : 0;
  Eight y[kRows], dy[kRows];  // loaded before the first is needed
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    int64_t at = from + int64_t(i) * kBlockRows * a.heads * kHeadDim;
    y[i] = *reinterpret_cast<const Eight*>(out + at);
    dy[i] = *reinterpret_cast<const Eight*>(dout + at);
  }
  float columns[8] = {};
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    float delta = row_product(y[i], dy[i]);
    if (vector == 0) a.to[count + to + i * kBlockRows + slot] = delta * a.share;
    for (int e = 0; e < 8; ++e) columns[e] += to_float(dy[i][e]);
  }
  if (threadIdx.x < kTile) {
    a.to[to + threadIdx.x] = row_lse * kLog2E;
    a.begin_sum(to + threadIdx.x);
  }
  add_over_block(columns, dout_columns + int64_t(blockIdx.x) * kHeadDim);
}
