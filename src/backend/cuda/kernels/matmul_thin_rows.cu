// Products of few rows (kernels/thin.cuh) with b as (N, K); the text before this says also kWarpRows, rows of b for a
// warp at a time, and kResident, the blocks that share a multiprocessor.
#include "backend/cuda/kernels/thin.cuh"

// A warp has kWarpRows rows of b at a time, and asks for the next ones before it adds up the sums of these.
// Grid: as many blocks as run at a time, at most.
extern "C" __global__ void __launch_bounds__(tokamak::kThreads, tokamak::kResident)
    multiply_rows(const tokamak::Element* given, const tokamak::Element* b,
                  const tokamak::Output* bias, const tokamak::Output* addend, tokamak::Output* y,
                  tokamak::RowArguments arguments, tokamak::Emptied emptied) {
  using namespace tokamak;
  constexpr int kVectors = kK / kVector, kSteps = (kVectors + 31) / 32, kBatch = kSteps < 3 ? kSteps : 3;
  constexpr bool kStaged = kPrologue || kAwaitsGiven;
  __shared__ __align__(16) Element staged[kStaged ? kM * kK : 1];
  int lane = threadIdx.x % 32, first = (blockIdx.x * kWarps + threadIdx.x / 32) * kWarpRows;
  const int stride = int(gridDim.x) * kWarps * kWarpRows;
  Packed<Element, kVector> w[kBatch][kWarpRows];
  const auto load = [&](int rows, int begin) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
#pragma unroll
      for (int r = 0; r < kWarpRows; ++r) {
        int at = (begin + i) * 32 + lane, n = rows + r < kN ? rows + r : kN - 1;
        if (at < kVectors) w[i][r] = load_packed<kVector>(b + int64_t(n) * kK + at * kVector);
      }
  };
  if (kAwaits) begin_link();
  if (kEarly) load(first, 0);
  if (!kAwaits) begin_kernel();
  if (!kEarly) load(first, 0);
  if (kStaged) stage_rows(given, arguments, staged);
  const Element* a = kStaged ? staged : given;
#pragma unroll 1
  for (; first < kN; first += stride) {
    float sum[kM][kWarpRows] = {};
#pragma unroll 1
    for (int begin = 0; begin < kSteps; begin += kBatch) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
#pragma unroll
        for (int r = 0; r < kWarpRows; ++r)
#pragma unroll
          for (auto& word : w[i][r].words) hold(word);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        int at = (begin + i) * 32 + lane;
        if (at >= kVectors) continue;
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          Elements x = load_elements(a + m * kK + at * kVector);
#pragma unroll
          for (int r = 0; r < kWarpRows; ++r)
#pragma unroll
            for (int v = 0; v < kVector; ++v) sum[m][r] = fmaf(to_float(x[v]), w[i][r][v], sum[m][r]);
        }
      }
      if (begin + kBatch < kSteps)
        load(first, begin + kBatch);
      else if (first + stride < kN)
        load(first + stride, 0);
    }
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int r = 0; r < kWarpRows; ++r) {
#pragma unroll
        for (int mask = 16; mask > 0; mask /= 2) sum[m][r] += __shfl_xor_sync(0xffffffffu, sum[m][r], mask);
        int64_t n = first + r, at = m * int64_t(kN) + n;
        if (lane == m * kWarpRows + r && n < kN)
          store_result(sum[m][r], kBias ? to_float(bias[n]) : 0, kAddend ? to_float(load_addend(addend + at)) : 0,
                       y[at]);
      }
  }
  if constexpr (kLinked)
    end_link<kAwaits>(emptied, int64_t(blockIdx.x) * kThreads + threadIdx.x, int64_t(gridDim.x) * kThreads);
}
