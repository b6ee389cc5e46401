// A step of generation: the k and v of the new tokens go into the cache behind the position[b] tokens that lie there,
// and each new token attends to all up to itself. The text before this says Element (of qkv and out), Cached, kHeadDim
// and, for one token a row, kSplit: keys of a block, kEarly: cache and position may be read while the kernel before
// this one runs, and of a link of a chain (kLinked) kAwaits: qkv is awaited. Legend: B batch, t new tokens, H heads, C
// = H * kHeadDim; qkv (B, t, 3C), cache (B, capacity, 2C) with k | v.
#include "backend/cuda/kernels/chain.cuh"
#include "backend/cuda/kernels/scalar_float.cuh"

namespace tokamak {

/// As DecodeArguments in backend/cuda/attention_decode_kernel.cpp.
struct DecodeArguments {
  int32_t time, heads, capacity, window;
  float scale;
  const int32_t* position;  // (B)

  // Of a token; the host does not see the position before the launch, so what does not fit is not stored, and its
  // output is NaN.
  __device__ int place(int64_t b, int64_t t) const { return position[b] + int(t); }
  /// The first key that a token sees which is the last of `end`.
  __device__ int first(int end) const { return end > window ? end - window : 0; }
  __device__ bool fits(int64_t b, int64_t t) const { return place(b, t) >= 0 && place(b, t) < capacity; }
};

constexpr int kWarps = 8, kPerLane = (kHeadDim + 31) / 32;

// Softmax of the keys seen so far and the values that it weighs; each lane has every 32nd column.
struct Partial {
  float top, sum, value[kPerLane];
};

// For one token a row: elements of a load, the lanes that share a key, and what each of them has of it.
constexpr int largest_load() {
  int n = 16 / int(sizeof(Cached));
  while (kHeadDim % n != 0) n /= 2;
  return n;
}
constexpr int kLoad = largest_load();
constexpr int lanes_of_key() {
  int lanes = 1;
  while (lanes < 32 && lanes * kLoad < kHeadDim) lanes *= 2;
  return lanes;
}
constexpr int kKeyLanes = lanes_of_key(), kLoads = (kHeadDim / kLoad + kKeyLanes - 1) / kKeyLanes;
constexpr int kThreads = 512, kParts = kThreads / 32, kKeysAtOnce = kThreads / kKeyLanes;
constexpr int kAhead = 5;  // of a thread, keys and values that are under way before the query is there

/// Column of element i of a lane's load l; from kHeadDim on there is none.
__device__ inline int column_of(int lane, int l) { return (l * kKeyLanes + lane) * kLoad; }

using Loaded = Vector<Cached, kLoad>;
constexpr float kLog2E = 1.44269504f;

/// What a thread found of some keys, whose scores are in units of log(2): the largest, the sum of 2^(score - top), and
/// its columns of the values weighed by those.
struct Found {
  float top, sum, value[kLoads][kLoad];

  /// To a top that is at least as large.
  __device__ void raise(float to) {
    float x = to == -HUGE_VALF ? 0.0f : scalar::power_of_two(top - to);
    top = to;
    sum *= x;
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
#pragma unroll
      for (int c = 0; c < kLoad; ++c) value[l][c] *= x;
  }
  /// What the thread at this distance has found.
  __device__ void add_lane(int mask) {
    raise(fmaxf(top, __shfl_xor_sync(0xffffffffu, top, mask)));  // both do
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
#pragma unroll
      for (int c = 0; c < kLoad; ++c) value[l][c] += __shfl_xor_sync(0xffffffffu, value[l][c], mask);
  }
};

__device__ inline void store_attention(float x, Element* to) {
  Element y;
  from_float(x, y);
  if constexpr (kLinked)
    hand_over(y, to);
  else
    *to = y;
}

/// What a block found of its keys, as Found.
struct Split {
  float top, sum, value[kHeadDim];
};

}  // namespace tokamak

// A thread per element. Grid: enough blocks of 256 for B * t * 2C.
extern "C" __global__ void __launch_bounds__(256)
    append_to_cache(const tokamak::Element* __restrict__ qkv, tokamak::Cached* __restrict__ cache, int64_t elements,
                    tokamak::DecodeArguments a) {
  using namespace tokamak;
  begin_kernel();
  int64_t e = int64_t(blockIdx.x) * 256 + threadIdx.x, width = int64_t(a.heads) * kHeadDim;
  if (e >= elements) return;
  int64_t column = e % (2 * width), row = e / (2 * width), b = row / a.time, t = row % a.time;
  if (!a.fits(b, t)) return;
  from_float(to_float(qkv[row * 3 * width + width + column]),
             cache[(b * a.capacity + a.place(b, t)) * 2 * width + column]);
}

// A block per query and head, a key per warp at a time. Grid: (t, H, B).
extern "C" __global__ void __launch_bounds__(256)
    attend_to_cache(const tokamak::Element* __restrict__ qkv, const tokamak::Cached* __restrict__ cache,
                    tokamak::Element* __restrict__ out, tokamak::DecodeArguments a) {
  using namespace tokamak;
  begin_kernel();
  __shared__ Partial partials[kWarps][32];
  const float kNone = -HUGE_VALF;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t width = int64_t(a.heads) * kHeadDim, column = int64_t(blockIdx.y) * kHeadDim;
  int64_t row = int64_t(blockIdx.z) * a.time + blockIdx.x;
  const Cached* keys = cache + int64_t(blockIdx.z) * a.capacity * 2 * width + column;
  float q[kPerLane];
  Partial mine{kNone, 0, {}};
  for (int k = 0; k < kPerLane; ++k) {
    int c = lane + 32 * k;
    q[k] = c < kHeadDim ? to_float(qkv[row * 3 * width + column + c]) * a.scale : 0.0f;
  }
  int end = a.fits(blockIdx.z, blockIdx.x) ? a.place(blockIdx.z, blockIdx.x) + 1 : 0;
  for (int j = a.first(end) + warp; j < end; j += kWarps) {
    const Cached* key = keys + int64_t(j) * 2 * width;
    float score = 0;
    for (int k = 0; k < kPerLane; ++k)
      if (lane + 32 * k < kHeadDim) score = fmaf(q[k], to_float(key[lane + 32 * k]), score);
    for (int m = 16; m > 0; m /= 2) score += __shfl_xor_sync(0xffffffffu, score, m);
    float top = fmaxf(mine.top, score), shrink = expf(mine.top - top), p = expf(score - top);
    mine.top = top;
    mine.sum = fmaf(mine.sum, shrink, p);
    for (int k = 0; k < kPerLane; ++k) {
      float v = lane + 32 * k < kHeadDim ? to_float(key[width + lane + 32 * k]) : 0.0f;
      mine.value[k] = fmaf(p, v, mine.value[k] * shrink);
    }
  }
  partials[warp][lane] = mine;
  __syncthreads();
  if (warp != 0) return;
  float top = kNone, sum = 0;
  for (int w = 0; w < kWarps; ++w) top = fmaxf(top, partials[w][lane].top);
  for (int w = 0; w < kWarps; ++w) sum = fmaf(partials[w][lane].sum, expf(partials[w][lane].top - top), sum);
  for (int k = 0; k < kPerLane; ++k) {
    float y = 0;
    for (int w = 0; w < kWarps; ++w) y = fmaf(partials[w][lane].value[k], expf(partials[w][lane].top - top), y);
    if (lane + 32 * k < kHeadDim) from_float(y / sum, out[row * width + column + lane + 32 * k]);
  }
}

// One token a row: a block stores the token's k and v, if they are among its keys, and attends to those. Where one
// block has all keys, `splits` is null. Grid: (capacity / kSplit, up, H, B).
extern "C" __global__ void __launch_bounds__(tokamak::kThreads)
    decode_one(const tokamak::Element* qkv, tokamak::Cached* cache, tokamak::Element* out,
               tokamak::Split* splits, tokamak::DecodeArguments a, tokamak::Emptied emptied) {
  using namespace tokamak;
  if (kAwaits) begin_link();
  if (!kAwaits && !kEarly) begin_kernel();
  __shared__ float sums[kParts][kHeadDim], tops[kParts], totals[kParts], query[kHeadDim];
  __shared__ __align__(16) Cached fresh[2][kHeadDim];  // the token's k and v
  const float kNone = -HUGE_VALF;
  int lane = threadIdx.x % kKeyLanes, group = threadIdx.x / kKeyLanes;
  int64_t b = blockIdx.z, width = int64_t(a.heads) * kHeadDim, head = int64_t(blockIdx.y) * kHeadDim;
  Cached* keys = cache + b * a.capacity * 2 * width + head;
  int end = a.fits(b, 0) ? a.place(b, 0) + 1 : 0, first = max(int(blockIdx.x) * kSplit, a.first(end));
  int count = min(end, int(blockIdx.x + 1) * kSplit) - first;  // of this block's keys
  bool has_token = count > 0 && first + count == end;
  int old = has_token ? count - 1 : count;  // keys that are in the cache
  // The thread's keys: `group`, counted from the block's first, and every kKeysAtOnce-th from there.
  Loaded k[kAhead][kLoads], v[kAhead][kLoads];
  const int64_t step = kKeysAtOnce * 2 * width;
  const Cached* next = keys + (int64_t(first) + group) * 2 * width;
  const auto load = [&](int j) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i, j += kKeysAtOnce, next += step)
#pragma unroll
      for (int l = 0; l < kLoads; ++l) {
        k[i][l] = v[i][l] = Loaded{};
        if (j >= old || column_of(lane, l) >= kHeadDim) continue;
        k[i][l] = *reinterpret_cast<const Loaded*>(next + column_of(lane, l));
        v[i][l] = *reinterpret_cast<const Loaded*>(next + width + column_of(lane, l));
      }
  };
  load(group);
  if (!kAwaits && kEarly) begin_kernel();

  const Element* token = qkv + b * 3 * width + head;
  for (int c = threadIdx.x; c < 3 * kHeadDim; c += kThreads) {
    int part = c / kHeadDim, column = c % kHeadDim;
    const Element* from = token + part * width + column;
    float x = to_float(kAwaits ? await_element(from) : *from);
    if (part == 0) {
      query[column] = x * (a.scale * kLog2E);
    } else {
      from_float(x, fresh[part - 1][column]);
      if (has_token) keys[(end - 1) * 2 * width + (part - 1) * width + column] = fresh[part - 1][column];
    }
  }
  __syncthreads();
  float q[kLoads][kLoad];
#pragma unroll
  for (int l = 0; l < kLoads; ++l)
#pragma unroll
    for (int c = 0; c < kLoad; ++c) q[l][c] = column_of(lane, l) < kHeadDim ? query[column_of(lane, l) + c] : 0.0f;

  Found found{kNone, 0, {}};
#pragma unroll 1
  for (int j = group; __any_sync(0xffffffffu, j < count);) {
    float score[kAhead], top = found.top;
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      score[i] = 0;
#pragma unroll
      for (int l = 0; l < kLoads; ++l) {
        if (j + i * kKeysAtOnce == old && column_of(lane, l) < kHeadDim) {  // the token, or behind the last key
          k[i][l] = *reinterpret_cast<const Loaded*>(fresh[0] + column_of(lane, l));
          v[i][l] = *reinterpret_cast<const Loaded*>(fresh[1] + column_of(lane, l));
        }
#pragma unroll
        for (int c = 0; c < kLoad; ++c) score[i] = fmaf(q[l][c], to_float(k[i][l][c]), score[i]);
      }
#pragma unroll
      for (int mask = kKeyLanes / 2; mask > 0; mask /= 2) score[i] += __shfl_xor_sync(0xffffffffu, score[i], mask);
      if (j + i * kKeysAtOnce >= count) score[i] = kNone;
      top = fmaxf(top, score[i]);
    }
    found.raise(top);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      float weight = top == kNone ? 0.0f : scalar::power_of_two(score[i] - top);
      found.sum += weight;
#pragma unroll
      for (int l = 0; l < kLoads; ++l)
#pragma unroll
        for (int c = 0; c < kLoad; ++c) found.value[l][c] = fmaf(weight, to_float(v[i][l][c]), found.value[l][c]);
    }
    j += kAhead * kKeysAtOnce;
    if (__any_sync(0xffffffffu, j < count)) load(j);
  }
#pragma unroll 1
  for (int mask = kKeyLanes; mask < 32; mask *= 2) found.add_lane(mask);
  int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) tops[warp] = found.top, totals[warp] = found.sum;
  if (threadIdx.x % 32 < kKeyLanes)
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
#pragma unroll
      for (int c = 0; c < kLoad; ++c)
        if (column_of(lane, l) < kHeadDim) sums[warp][column_of(lane, l) + c] = found.value[l][c];
  __syncthreads();
  Split* split = splits ? splits + (b * a.heads + blockIdx.y) * gridDim.x + blockIdx.x : nullptr;
  // Each warp that finishes has the parts' weights, one a lane.
#pragma unroll 1
  for (int c = threadIdx.x; c < (kHeadDim + 31) / 32 * 32; c += kThreads) {
    float top = tops[threadIdx.x % kParts], weight = top;
#pragma unroll
    for (int mask = kParts / 2; mask > 0; mask /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, mask));
    weight = top == kNone ? 0.0f : scalar::power_of_two(weight - top);
    float sum = totals[threadIdx.x % kParts] * weight, y = 0;
#pragma unroll
    for (int mask = kParts / 2; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
#pragma unroll 4
    for (int part = 0; part < kParts; ++part)
      y = fmaf(sums[part][c < kHeadDim ? c : 0], __shfl_sync(0xffffffffu, weight, part), y);
    if (split && c == 0) split->top = top, split->sum = sum;
    if (c >= kHeadDim) continue;
    if (split)
      split->value[c] = y;
    else
      store_attention(y / sum, out + b * width + head + c);  // nothing fits: 0 / 0
  }
  if constexpr (kLinked) {
    int64_t block = (int64_t(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    end_link<kAwaits>(emptied, block * kThreads + threadIdx.x,
                      int64_t(gridDim.x) * gridDim.y * gridDim.z * kThreads);
  }
}

// Adds up the splits of a head, in order. Grid: (H, B).
extern "C" __global__ void __launch_bounds__(128)
    combine_splits(const tokamak::Split* __restrict__ splits, int32_t count, tokamak::Element* __restrict__ out) {
  using namespace tokamak;
  begin_kernel();
  int64_t row = int64_t(blockIdx.y) * gridDim.x + blockIdx.x;
  const Split* mine = splits + row * count;
  float top = mine[0].top, sum = 0;
  for (int s = 1; s < count; ++s) top = fmaxf(top, mine[s].top);
  // Of a split without keys nothing is added; where none has any, 0 / 0 is the answer.
  auto weight = [&](int s) { return mine[s].sum > 0 ? scalar::power_of_two(mine[s].top - top) : 0.0f; };
  for (int s = 0; s < count; ++s) sum = fmaf(mine[s].sum, weight(s), sum);
  for (int c = threadIdx.x; c < kHeadDim; c += 128) {
    float y = 0;
    for (int s = 0; s < count; ++s) y = fmaf(mine[s].value[c], weight(s), y);
    store_attention(y / sum, out + row * kHeadDim + c);
  }
}
