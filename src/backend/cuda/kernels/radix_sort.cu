// A stable sort of positions by id, 8 bits at a time, least significant first: for each digit count_digits,
// scan_counts, place_by_digit. Only integers, and every place is a function of the ids: the same result every time. The
// text before this says kCount (of ids), kInvalid (the key of ids outside of [0, kInvalid), which come last) and
// kBlocks.
#include "backend/cuda/kernels/std.cuh"

constexpr int kBlock = 1024;  // ids of one block, one a thread
constexpr int kWarps = kBlock / 32;
constexpr int kDigits = 256;

struct Keyed {
  int32_t key;
  int32_t position;
};

// Item i of the input of a pass: of the first one, the ids themselves.
__device__ inline Keyed item(const int32_t* ids, const Keyed* sorted, int i, bool first) {
  if (!first) return sorted[i];
  int32_t id = ids[i];
  return {id < 0 || id >= kInvalid ? kInvalid : id, i};
}

// For every digit, how many of this warp's items have it, into counts; gives how many items before this one in the warp
// have the digit of this one.
__device__ inline int rank_in_warp(int digit, bool valid, int* counts) {
  unsigned peers = __match_any_sync(0xffffffffu, valid ? digit : -1);
  int before = __popc(peers & ((1u << (threadIdx.x % 32)) - 1));
  if (valid && before == 0) counts[digit] = __popc(peers);
  return before;
}

// counts[digit * kBlocks + block]: how many items of the block have the digit.
extern "C" __global__ void __launch_bounds__(kBlock)
    count_digits(const int32_t* ids, const Keyed* sorted, int32_t* counts, int32_t shift, int32_t first) {
  tokamak::begin_kernel();
  __shared__ int total[kDigits];
  if (threadIdx.x < kDigits) total[threadIdx.x] = 0;
  __syncthreads();
  int i = int(blockIdx.x) * kBlock + int(threadIdx.x);
  if (i < kCount) atomicAdd(&total[item(ids, sorted, i, first != 0).key >> shift & (kDigits - 1)], 1);
  __syncthreads();
  if (threadIdx.x < kDigits) counts[int(threadIdx.x) * kBlocks + int(blockIdx.x)] = total[threadIdx.x];
}

// Makes each count the sum of all counts before it. One block.
extern "C" __global__ void __launch_bounds__(kBlock) scan_counts(int32_t* counts) {
  tokamak::begin_kernel();
  constexpr int kAll = kDigits * kBlocks, kEach = (kAll + kBlock - 1) / kBlock;
  __shared__ int sums[kBlock];
  int t = int(threadIdx.x), begin = t * kEach, end = min(begin + kEach, kAll);
  int sum = 0;
  for (int i = begin; i < end; ++i) sum += counts[i];
  sums[t] = sum;
  __syncthreads();
  for (int step = 1; step < kBlock; step *= 2) {
    int other = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += other;
    __syncthreads();
  }
  int before = sums[t] - sum;
  for (int i = begin; i < end; ++i) {
    int count = counts[i];
    counts[i] = before;
    before += count;
  }
}

extern "C" __global__ void __launch_bounds__(kBlock)
    place_by_digit(const int32_t* ids, const Keyed* sorted, const int32_t* offsets, Keyed* to, int32_t shift,
                   int32_t first) {
  tokamak::begin_kernel();
  __shared__ int counts[kWarps][kDigits];
  int t = int(threadIdx.x), warp = t / 32, i = int(blockIdx.x) * kBlock + t;
  for (int k = t; k < kWarps * kDigits; k += kBlock) (&counts[0][0])[k] = 0;
  __syncthreads();
  bool valid = i < kCount;
  Keyed own = valid ? item(ids, sorted, i, first != 0) : Keyed{0, 0};
  int digit = own.key >> shift & (kDigits - 1);
  int rank = rank_in_warp(digit, valid, counts[warp]);
  __syncthreads();
  if (t < kDigits) {  // where each warp's items of this digit begin
    int at = offsets[t * kBlocks + int(blockIdx.x)];
    for (int w = 0; w < kWarps; ++w) {
      int count = counts[w][t];
      counts[w][t] = at;
      at += count;
    }
  }
  __syncthreads();
  if (valid) to[counts[warp][digit] + rank] = own;
}
