// Products of few rows with a matrix that is read once: y (M, N) = f(a (M, K) b + bias), or addend + a b. What counts
// is to have many loads of b under way. The text before this says Element (of a and b), Output, kM, kN, kK, kBias,
// kAddend, kFunction, finish() and kThreads; kColumns, those of a block where b is (K, N), and kWarpRows, rows of b for
// a warp where it is (N, K); kPrologue: there is no a, but make_rows(), with which each block makes it of RowArguments;
// kEarly: b may be read while the kernel before this one runs. Every sum is made in one order that does not depend on
// M. Of a link of a chain (kLinked; b is (K, N)), kAwaits: an operand is awaited, of which a (kAwaitsGiven), the addend
// (kAwaitsAddend) and what await_rows() awaits of RowArguments.
//
// No parameter is `__restrict__`: the assembler moves loads that are read-only over the wait of begin_kernel().
#include "backend/cuda/kernels/chain.cuh"

namespace tokamak {

constexpr int kVector = 16 / int(sizeof(Element)), kWarps = kThreads / 32;
using Elements = Vector<Element, kVector>;

__device__ inline Elements load_elements(const Element* from) { return *reinterpret_cast<const Elements*>(from); }

/// Until here a word is only loaded: the compiler makes nothing of it before, for which it would have to wait.
__device__ inline void hold(uint32_t& word) { asm volatile("" : "+r"(word)); }
__device__ inline void hold(float& word) { asm volatile("" : "+f"(word)); }
__device__ inline void hold(bf16& x) { asm volatile("" : "+h"(x.bits)); }
__device__ inline void hold(f16& x) { asm volatile("" : "+h"(x.bits)); }

/// Which of the kVector columns of a thread it has the sums of.
struct Share {
  int first, count;
};

/// Sums over the threads of a warp that have the same columns, every kLanes-th one. In each round a thread gives half
/// of its sums to another, whose other half it takes. Several may end with the same one.
template <int kLanes>
__device__ inline Share add_columns(float (&sum)[kVector]) {
  Share mine{0, kVector};
#pragma unroll
  for (int mask = 16; mask >= kLanes; mask /= 2) {
    bool upper = threadIdx.x & mask;
    int half = mine.count / 2;
    if (half == 0) sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], mask);
#pragma unroll
    for (int v = 0; v < half; ++v) {
      float kept = upper ? sum[half + v] : sum[v], given = upper ? sum[v] : sum[half + v];
      sum[v] = kept + __shfl_xor_sync(0xffffffffu, given, mask);
    }
    if (half > 0) mine = {mine.first + (upper ? half : 0), half};
  }
  return mine;
}

/// y may lie where the addend does.
__device__ inline void store_result(float sum, float bias, float addend, Output& y) {
  if (kBias) sum += bias;
  if (kAddend) sum += addend;
  if (kFunction) sum = finish(rounded<Output>(sum), 0.0f);
  if constexpr (kLinked) {
    Output result;
    from_float(sum, result);
    hand_over(result, &y);
  } else {
    from_float(sum, y);
  }
}

}  // namespace tokamak

// b as (K, N): a block has kColumns columns, a thread kVector of them in every kRows-th row. Grid: N / kColumns, up.
extern "C" __global__ void __launch_bounds__(tokamak::kThreads)
    multiply_columns(const tokamak::Element* given, const tokamak::Element* b,
                     const tokamak::Output* bias, const tokamak::Output* addend, tokamak::Output* y,
                     tokamak::RowArguments arguments, tokamak::Emptied emptied) {
  using namespace tokamak;
  constexpr int kLanes = kColumns / kVector, kRows = kThreads / kLanes, kSteps = (kK + kRows - 1) / kRows;
  constexpr int kMost = kM > 2 ? 4 : 12, kBatch = kSteps < kMost ? kSteps : kMost;  // loads of a thread under way
  constexpr bool kWhole = kK % (kRows * kBatch) == 0 && kN % kColumns == 0;
  __shared__ float parts[kWarps][kM][kColumns];
  // Rows of a that are not large come to shared memory all at once; else the compiler loads some after others were
  // used.
  constexpr bool kStaged = kPrologue || kAwaitsGiven || kM * kK * int(sizeof(Element)) <= 12 << 10;
  __shared__ __align__(16) Element staged[kStaged ? kM * kK : 1];
  int lane = threadIdx.x % kLanes, first_row = threadIdx.x / kLanes;
  int column = blockIdx.x * kColumns + lane * kVector, rows = column < kN ? kK : 0;
  static_assert(kThreads % kColumns == 0);
  Packed<Element, kVector> w[kBatch];
  const auto load = [&](int begin) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      int k = (begin + i) * kRows + first_row;
      if (kWhole || k < rows) w[i] = load_packed<kVector>(b + int64_t(k) * kN + column);
    }
  };
  if (kAwaits) begin_link();
  if (kEarly) load(0);
  if (!kAwaits) begin_kernel();
  if (!kEarly) load(0);
  int n = blockIdx.x * kColumns + threadIdx.x % kColumns;  // of the thread's results
  Output bias_n{}, addend_n{};                             // of the first
  const auto addend_at = [&](int64_t at) { return kAwaitsAddend ? await_element(addend + at) : addend[at]; };
  if (kBias && n < kN) bias_n = bias[n];
  if (kAddend && threadIdx.x < kM * kColumns && n < kN) addend_n = addend_at(threadIdx.x / kColumns * kN + n);
  float sum[kM][kVector] = {};
  if (kAwaits && kPrologue) await_rows(arguments);
  if (kPrologue) make_rows(arguments, staged);  // while the weights are under way
  if constexpr (kAwaitsGiven) {
    const Element* const from[] = {given};
    Element* const to[] = {staged};
    await_all<kThreads>(from, to, kM * kK);
  }
#pragma unroll 1
  for (int i = threadIdx.x; kStaged && !kPrologue && !kAwaitsGiven && i < kM * kK / kVector; i += kThreads)
    reinterpret_cast<Elements*>(staged)[i] = load_elements(given + i * kVector);
  if (kStaged) __syncthreads();
  const Element* a = kStaged ? staged : given;
  for (int begin = 0; begin < kSteps; begin += kBatch) {
    if (begin > 0) load(begin);
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
#pragma unroll
      for (auto& word : w[i].words) hold(word);
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      int k = (begin + i) * kRows + first_row;
      if (!kWhole && k >= rows) continue;
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        float x = to_float(a[m * kK + k]);
#pragma unroll
        for (int v = 0; v < kVector; ++v) sum[m][v] = fmaf(x, w[i][v], sum[m][v]);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < kM; ++m) {
    Share mine = add_columns<kLanes>(sum[m]);
#pragma unroll
    for (int v = 0; v < mine.count; ++v)
      parts[threadIdx.x / 32][m][lane * kVector + mine.first + v] = sum[m][v];
  }
  __syncthreads();
  hold(bias_n);
  hold(addend_n);
  for (int i = threadIdx.x; i < kM * kColumns; i += kThreads) {
    int m = i / kColumns;
    float total = 0;
    for (int warp = 0; warp < kWarps; ++warp) total += parts[warp][m][i % kColumns];
    if (n >= kN) continue;
    int64_t at = int64_t(m) * kN + n;
    if (kAddend && i >= kThreads) addend_n = addend_at(at);
    store_result(total, to_float(bias_n), to_float(addend_n), y[at]);
  }
  if constexpr (kLinked)
    end_link<kAwaits>(emptied, int64_t(blockIdx.x) * kThreads + threadIdx.x, int64_t(gridDim.x) * kThreads);
}

// b as (N, K): a warp has kWarpRows rows of b. Grid: N / (kWarps * kWarpRows), up.
extern "C" __global__ void __launch_bounds__(tokamak::kThreads)
    multiply_rows(const tokamak::Element* a, const tokamak::Element* b,
                  const tokamak::Output* bias, const tokamak::Output* addend, tokamak::Output* y) {
  using namespace tokamak;
  constexpr int kVectors = kK / kVector, kSteps = (kVectors + 31) / 32, kBatch = kSteps < 4 ? kSteps : 4;
  int lane = threadIdx.x % 32, first = (blockIdx.x * kWarps + threadIdx.x / 32) * kWarpRows;
  Packed<Element, kVector> w[kBatch][kWarpRows];
  const auto load = [&](int begin) {
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
#pragma unroll
      for (int r = 0; r < kWarpRows; ++r) {
        int at = (begin + i) * 32 + lane, n = first + r < kN ? first + r : kN - 1;
        if (at < kVectors) w[i][r] = load_packed<kVector>(b + int64_t(n) * kK + at * kVector);
      }
  };
  if (kEarly) load(0);
  begin_kernel();
  if (!kEarly) load(0);
  if (first >= kN) return;
  float sum[kM][kWarpRows] = {};
  for (int begin = 0; begin < kSteps; begin += kBatch) {
    if (begin > 0) load(begin);
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
  }
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int r = 0; r < kWarpRows; ++r) {
#pragma unroll
      for (int mask = 16; mask > 0; mask /= 2) sum[m][r] += __shfl_xor_sync(0xffffffffu, sum[m][r], mask);
      int64_t n = first + r, at = m * int64_t(kN) + n;
      if (lane == m * kWarpRows + r && n < kN)
        store_result(sum[m][r], kBias ? to_float(bias[n]) : 0, kAddend ? to_float(addend[at]) : 0, y[at]);
    }
}
