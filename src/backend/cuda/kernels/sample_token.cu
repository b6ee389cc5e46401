// sample_token: a block chooses a row's next token by the rule of ops/sampler.h. The text before this says kVocab,
// kStride (of a row of logits), kPlaces and kShared: whether the row lies in shared memory after it was read once.
// Weights are integers, e^((logit - largest) / temperature) * 2^40, so that their sums do not depend on an order.
//
// The candidates are an order of (logit, id), likelier ones first. Which of them stay, those of the largest weights
// that together reach a target, is found digit by digit: a histogram of one digit tells in which of its values the
// target is reached, and only candidates with that one are looked at for the next digit.
#include "backend/cuda/kernels/philox.cuh"

namespace tokamak {

constexpr int kThreads = 1024, kWarps = kThreads / 32, kBins = 2048, kBinsEach = kBins / kThreads, kMostIds = 1024;

struct Candidate {
  float logit;
  int id;
};

__device__ inline Candidate likelier(const Candidate& a, const Candidate& b) {
  return b.logit > a.logit || (b.logit == a.logit && b.id < a.id) ? b : a;
}
__device__ inline Candidate likeliest_of_warp(Candidate x) {
  for (int mask = 16; mask > 0; mask /= 2)
    x = likelier(x, {__shfl_xor_sync(0xffffffffu, x.logit, mask), __shfl_xor_sync(0xffffffffu, x.id, mask)});
  return x;
}

/// Candidates up to and including those that begin as `prefix` does. The first digit is a coarse rank below the largest
/// logit, whose values are about equally common; the others are the bits of rank().
struct Bound {
  int coarse = kBins;   // the first digit
  int shift = 64;       // of rank() the bits from here on are known
  uint64_t prefix = 0;  // those bits
};

struct Row {
  const float* logits;
  float largest, inverse_temperature;

  __device__ float logit(int id) const { return logits[id] + 0.0f; }  // -0 is 0

  __device__ int coarse(int id) const {
    float below = (largest - logit(id)) * 64.0f;
    return below < kBins - 1 ? int(below) : kBins - 1;
  }

  /// Smaller is likelier: the logit's bits in descending order, then the id.
  __device__ uint64_t rank(int id) const {
    uint32_t bits = __float_as_uint(logit(id));
    uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return uint64_t(~ascending) << 32 | uint32_t(id);
  }

  __device__ uint64_t weight(int id) const {
    return uint64_t(expf((logit(id) - largest) * inverse_temperature) * 1099511627776.0f);
  }

  __device__ uint64_t leading(int id, int shift) const { return shift == 64 ? 0 : rank(id) >> shift; }

  __device__ bool has(const Bound& bound, int id) const {
    int c = coarse(id);
    return c < bound.coarse || (c == bound.coarse && leading(id, bound.shift) <= bound.prefix);
  }
};

/// What may still be chosen: all ids, or a list of them, ascending.
struct Pool {
  const int32_t* ids = nullptr;
  int count = kVocab;

  __device__ int operator[](int i) const { return ids ? ids[i] : i; }
};

struct Shared {
  uint64_t weights[kBins];
  uint32_t counts[kBins];
  uint64_t warps[kWarps];
  Candidate tops[kWarps];
  int32_t ids[kMostIds];
  int found;  // the bin in which a target is reached,
  uint64_t before, in_found;  // the weights before it and in it
  uint32_t count;             // and how many candidates it has
  int32_t token;
};

/// The sum of x over this thread and those before it.
__device__ __noinline__ uint64_t scan(uint64_t x, Shared& s) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int d = 1; d < 32; d *= 2) {
    uint64_t y = __shfl_up_sync(0xffffffffu, x, d);
    if (lane >= d) x += y;
  }
  __syncthreads();
  if (lane == 31) s.warps[warp] = x;
  __syncthreads();
#pragma unroll 4
  for (int w = 0; w < warp; ++w) x += s.warps[w];
  return x;
}

__device__ inline uint64_t sum_all(uint64_t x, Shared& s) {
  scan(x, s);
  uint64_t total = 0;
#pragma unroll 4
  for (int w = 0; w < kWarps; ++w) total += s.warps[w];
  return total;
}

/// The bin in which the weights of the histogram, or its counts, reach the target, which is at least 1 and at most
/// their sum.
template <bool kCounts>
__device__ inline void find_bin(uint64_t target, Shared& s) {
  auto weight_of = [&](int bin) { return kCounts ? s.counts[bin] : s.weights[bin]; };
  uint64_t mine = 0;
  for (int i = 0; i < kBinsEach; ++i) mine += weight_of(threadIdx.x * kBinsEach + i);
  uint64_t before = scan(mine, s) - mine;
  for (int i = 0; i < kBinsEach; ++i) {
    int bin = threadIdx.x * kBinsEach + i;
    uint64_t weight = weight_of(bin);
    if (before < target && before + weight >= target) {
      s.found = bin;
      s.before = before;
      s.in_found = weight;
      s.count = s.counts[bin];
    }
    before += weight;
  }
  __syncthreads();
}

/// The ids of the first coarse ranks, `count` of them. All that comes later looks at these alone, where before it
/// looked at the whole row. Each thread has a run of ids.
__device__ inline Pool first_ranks(const Row& row, int last_rank, int count, Shared& s) {
  constexpr int kRun = (kVocab + kThreads - 1) / kThreads;
  int first = threadIdx.x * kRun, last = first + kRun < kVocab ? first + kRun : kVocab;
  uint64_t mine = 0;
#pragma unroll 4
  for (int id = first; id < last; ++id) mine += row.coarse(id) <= last_rank;
  int at = int(scan(mine, s) - mine);
#pragma unroll 1
  for (int id = first; mine > 0 && id < last; ++id)
    if (row.coarse(id) <= last_rank) s.ids[at++] = id;
  __syncthreads();
  return {s.ids, count};
}

/// The fewest of the likeliest candidates in `within` whose weights add up to the target, or, with kCounts, so many;
/// the pool is then what is left of it, if that is little.
template <bool kCounts>
__device__ inline Bound select(const Row& row, Pool& pool, const Bound& within, uint64_t target, Shared& s) {
  constexpr int kLevels = 7, kDigit = 11;  // bits
  Bound bound;
  // Loops stay loops: other kernels have run since the last time, so all of this one's text may have to be read again.
#pragma unroll 1
  for (int level = 0; level < kLevels; ++level) {
    int shift = level + 1 < kLevels ? 64 - kDigit * level : 0, known = bound.shift;
#pragma unroll 1
    for (int bin = threadIdx.x; bin < kBins; bin += kThreads) s.weights[bin] = 0, s.counts[bin] = 0;
    __syncthreads();
#pragma unroll 2
    for (int i = threadIdx.x; i < pool.count; i += kThreads) {
      int id = pool[i];
      if (level > 0 && (row.coarse(id) != bound.coarse || row.leading(id, known) != bound.prefix)) continue;
      if (!row.has(within, id)) continue;
      int digit = level == 0 ? row.coarse(id) : int(row.leading(id, shift) & ((uint64_t(1) << (known - shift)) - 1));
      if (!kCounts)
        atomicAdd(reinterpret_cast<unsigned long long*>(&s.weights[digit]), (unsigned long long)row.weight(id));
      atomicAdd(&s.counts[digit], 1u);
    }
    __syncthreads();
    find_bin<kCounts>(target, s);
    if (level == 0)
      bound.coarse = s.found;
    else
      bound.prefix = bound.prefix << (known - shift) | uint64_t(s.found);
    bound.shift = shift;
    target -= s.before;
    bool whole = s.count == 1 || s.in_found == target;
    uint64_t left = s.before + s.in_found;
    __syncthreads();
    if (kCounts && level == 0 && left <= kMostIds) pool = first_ranks(row, bound.coarse, int(left), s);
    if (whole) break;
  }
  return bound;
}

/// The inverse of the candidates' distribution function, in the order of their ids. Each thread has a run of those.
__device__ inline int32_t choose(const Row& row, const Pool& pool, const Bound& bound, float uniform, int32_t likeliest,
                                 Shared& s) {
  int run = (pool.count + kThreads - 1) / kThreads, first = min(int(threadIdx.x) * run, pool.count);
  int last = min(first + run, pool.count);
  uint64_t mine = 0;
#pragma unroll 2
  for (int i = first; i < last; ++i)
    if (int id = pool[i]; row.has(bound, id)) mine += row.weight(id);
  uint64_t before = scan(mine, s) - mine, total = 0;
#pragma unroll 4
  for (int w = 0; w < kWarps; ++w) total += s.warps[w];
  auto target = uint64_t(double(uniform) * double(total));
  if (threadIdx.x == 0) s.token = likeliest;
  __syncthreads();
  if (before <= target && target < before + mine)
#pragma unroll 1
    for (int i = first; i < last; ++i) {
      int id = pool[i];
      if (!row.has(bound, id)) continue;
      before += row.weight(id);
      if (before > target) {
        s.token = id;
        break;
      }
    }
  __syncthreads();
  return s.token;
}

/// The largest logit and its first id; kNoToken (-1) where one is NaN or infinite or all are minus infinity. With
/// kShared the row is copied on the way.
__device__ inline int32_t find_largest(Row& row, float* copy, Shared& s) {
  constexpr int kLoads = 16;  // under way
  Candidate top{-HUGE_VALF, kVocab};
  bool broken = false;
#pragma unroll 1
  for (int base = threadIdx.x; base < kVocab; base += kLoads * kThreads) {
    float x[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      if (base + i * kThreads < kVocab) x[i] = row.logit(base + i * kThreads);
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      int id = base + i * kThreads;
      if (id >= kVocab) break;
      if (kShared) copy[id] = x[i];
      broken = broken || !(x[i] < HUGE_VALF);
      if (x[i] > top.logit) top = {x[i], id};
    }
  }
  top = likeliest_of_warp(top);
  if (threadIdx.x % 32 == 0) s.tops[threadIdx.x / 32] = top;
  broken = __syncthreads_or(broken);
#pragma unroll 4
  for (int w = 0; w < kWarps; ++w) top = likelier(top, s.tops[w]);
  row.largest = top.logit;
  if (kShared) row.logits = copy;
  return broken || top.id == kVocab ? -1 : top.id;
}

__device__ inline int32_t sample(Row row, float* copy, const float* settings, float uniform, Shared& s) {
  int32_t likeliest = find_largest(row, copy, s);
  float temperature = settings[0], top_k = settings[1], top_p = settings[2];
  if (likeliest < 0 || temperature == 0) return likeliest;
  row.inverse_temperature = 1 / temperature;
  if (row.inverse_temperature == HUGE_VALF) return likeliest;
  Bound bound;
  Pool pool;
  if (top_k >= 1 && top_k < kVocab)  // of a part of one, as ops/sample_token.cpp, nothing
    bound = select<true>(row, pool, bound, uint64_t(top_k), s);
  if (top_p < 1) {
    uint64_t mine = 0;
#pragma unroll 2
    for (int i = threadIdx.x; i < pool.count; i += kThreads)
      if (int id = pool[i]; row.has(bound, id)) mine += row.weight(id);
    double all = double(sum_all(mine, s)), target = ceil(double(top_p) * all);
    __syncthreads();
    bound = select<false>(row, pool, bound, uint64_t(target > 1 ? target : 1), s);
  }
  return choose(row, pool, bound, uniform, likeliest, s);
}

}  // namespace tokamak

// Grid: B. Dynamic shared memory: a row, with kShared.
extern "C" __global__ void __launch_bounds__(tokamak::kThreads)
    sample_token(const float* __restrict__ logits, const int32_t* position, const int32_t* drawn,
                 const int32_t* __restrict__ seeds, const float* __restrict__ settings, int32_t* __restrict__ token,
                 int32_t* next_position, int32_t* next_drawn) {
  using namespace tokamak;
  begin_kernel();
  extern __shared__ float copy[];
  __shared__ Shared shared;
  int b = blockIdx.x;
  Row row{logits + int64_t(b) * kStride};
  // Stream of the numbers that choose tokens, as in ops/sampler.cpp; the number of a block's first element.
  float uniform = uniform_float(philox_words<10>(seeds + 2 * b, drawn[b], uint64_t(2) << 32).x);
  int32_t chosen = sample(row, copy, settings, uniform, shared);
  if (threadIdx.x != 0) return;
  int32_t next = position[b] + 1;
  token[b] = chosen;
  next_position[b] = next < kPlaces ? next : kPlaces - 1;
  next_drawn[b] = drawn[b] + 1;
}
