// Products of few rows with a matrix that is read once: y (M, N) = f(a (M, K) b + bias), or addend + a b. What counts
// is to have many loads of b under way. The text before this says what kernels/thin_columns.cuh expects, Output, kBias,
// kAddend, kFunction and finish(); kWarpRows, rows of b for a warp where it is (N, K), and kResident, the blocks that
// then share a multiprocessor; kPrologue: there is no a, but make_rows(), with which each block makes it of
// RowArguments; kEarly: b may be read while the kernel before this one runs. Every sum is made in one order that does
// not depend on M. Of a link of a chain (kLinked), kAwaits: an operand is awaited, of which a (kAwaitsGiven), the addend
// (kAwaitsAddend) and what await_rows() awaits of RowArguments; fetch_columns() asks for what of these is there before.
//
// No parameter is `__restrict__`: the assembler moves loads that are read-only over the wait of begin_kernel().
#include "backend/cuda/kernels/chain.cuh"
#include "backend/cuda/kernels/thin_columns.cuh"

namespace tokamak {

/// Rows of a in shared memory, while weights are under way: made, awaited or copied.
__device__ inline void stage_rows(const Element* given, RowArguments& arguments, Element* staged) {
  if (kAwaits && kPrologue) await_rows(arguments);
  if (kPrologue) make_rows(arguments, staged);
  if constexpr (kAwaitsGiven) {
    const Element* const from[] = {given};
    Element* const to[] = {staged};
    await_all<kThreads>(from, to, kM * kK);
  }
#pragma unroll 1
  for (int i = threadIdx.x; !kPrologue && !kAwaitsGiven && i < kM * kK / kVector; i += kThreads)
    reinterpret_cast<Elements*>(staged)[i] = load_elements(given + i * kVector);
  __syncthreads();
}

__device__ inline Output load_addend(const Output* from) { return kAwaitsAddend ? await_element(from) : *from; }

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

// b as (K, N): a block has kColumns columns. Grid: N / kColumns, up.
extern "C" __global__ void __launch_bounds__(tokamak::kThreads)
    multiply_columns(const tokamak::Element* given, const tokamak::Element* b,
                     const tokamak::Output* bias, const tokamak::Output* addend, tokamak::Output* y,
                     tokamak::RowArguments arguments, tokamak::Emptied emptied) {
  using namespace tokamak;
  using Product = Columns<kTensor>::Type;
  // Rows of a that are not large come to shared memory all at once; else the compiler loads some after others were
  // used.
  constexpr bool kStaged = kPrologue || kAwaitsGiven || kM * kK * int(sizeof(Element)) <= 12 << 10;
  constexpr int kTeam = 4;  // threads of a result
  using Parts = float[Product::kParts][kM][kColumns];
  constexpr int kRowBytes = kStaged ? kM * kK * int(sizeof(Element)) : 0;
  // Sums of many rows take the place of a when all threads have read that.
  constexpr bool kInPlace = kM > 2;
  constexpr int kFree = kInPlace ? 0 : (kRowBytes + 15) / 16 * 16, kSumBytes = kFree + int(sizeof(Parts));
  __shared__ __align__(16) char memory[kRowBytes > kSumBytes ? kRowBytes : kSumBytes];
  auto* staged = reinterpret_cast<Element*>(memory);
  auto& parts = *reinterpret_cast<Parts*>(memory + kFree);
  Product product{b};
  if (kAwaits) begin_link();
  if (kAwaits) fetch_columns(arguments);
  if (kEarly) product.start();
  if (!kAwaits) begin_kernel();
  if (!kEarly) product.start();
  const auto column_of = [&](int result) { return int(blockIdx.x) * kColumns + result % kColumns; };
  const int mine = threadIdx.x / kTeam;  // the first
  const bool finishes = threadIdx.x % kTeam == 0 && mine < kM * kColumns && column_of(mine) < kN;
  Output bias_n{}, addend_n{};  // of the first
  if (kBias && finishes) bias_n = bias[column_of(mine)];
  if (kAddend && finishes) addend_n = load_addend(addend + mine / kColumns * kN + column_of(mine));
  if (kStaged) stage_rows(given, arguments, staged);
  product.multiply(kStaged ? staged : given);
  if (kInPlace) __syncthreads();
  product.put(parts);
  __syncthreads();
  hold(bias_n);
  hold(addend_n);
  for (int result = mine; result < kM * kColumns; result += kThreads / kTeam) {
    int m = result / kColumns, n = column_of(result);
    float total = 0;
#pragma unroll
    for (int part = threadIdx.x % kTeam; part < Product::kParts; part += kTeam)
      total += parts[part][m][result % kColumns];
#pragma unroll
    for (int mask = 1; mask < kTeam; mask *= 2) total += __shfl_xor_sync(0xffffffffu, total, mask);
    if (threadIdx.x % kTeam != 0 || n >= kN) continue;
    int64_t at = int64_t(m) * kN + n;
    if (kBias && result != mine) bias_n = bias[n];
    if (kAddend && result != mine) addend_n = load_addend(addend + at);
    store_result(total, to_float(bias_n), to_float(addend_n), y[at]);
  }
  if constexpr (kLinked)
    end_link<kAwaits>(emptied, int64_t(blockIdx.x) * kThreads + threadIdx.x, int64_t(gridDim.x) * kThreads);
}

// b as (N, K): a warp has kWarpRows rows of b at a time, and asks for the next ones before it adds up the sums of these.
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
  if (kAwaits) fetch_columns(arguments);
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
