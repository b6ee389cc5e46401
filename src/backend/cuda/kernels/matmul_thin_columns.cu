// Products of few rows (kernels/thin.cuh) with b as (K, N); the text before this says also what kernels/thin_columns.cuh
// expects.
#include "backend/cuda/kernels/thin_columns.cuh"

// A block has kColumns columns. Grid: N / kColumns, up.
extern "C" __global__ void __launch_bounds__(tokamak::kThreads)
    multiply_columns(const tokamak::Element* given, const tokamak::Element* b,
                     const tokamak::Output* bias, const tokamak::Output* addend, tokamak::Output* y,
                     tokamak::RowArguments arguments, tokamak::Emptied emptied) {
  using namespace tokamak;
  // Rows of a that are not large come to shared memory all at once; else the compiler loads some after others were
  // used.
  constexpr bool kStaged = kPrologue || kAwaitsGiven || kM * kK * int(sizeof(Element)) <= 12 << 10;
  constexpr int kTeam = 4;  // threads of a result
  using Parts = float[Columns::kParts][kM][kColumns];
  constexpr int kRowBytes = kStaged ? kM * kK * int(sizeof(Element)) : 0;
  // Sums of many rows take the place of a when all threads have read that.
  constexpr bool kInPlace = kM > 2;
  constexpr int kFree = kInPlace ? 0 : (kRowBytes + 15) / 16 * 16, kSumBytes = kFree + int(sizeof(Parts));
  __shared__ __align__(16) char memory[kRowBytes > kSumBytes ? kRowBytes : kSumBytes];
  auto* staged = reinterpret_cast<Element*>(memory);
  auto& parts = *reinterpret_cast<Parts*>(memory + kFree);
  Columns product{b};
  if (kAwaits) begin_link();
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
    for (int part = threadIdx.x % kTeam; part < Columns::kParts; part += kTeam)
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
