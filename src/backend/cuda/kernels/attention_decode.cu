// A step of generation: the k and v of the new tokens go into the cache behind the position[b] tokens that lie there,
// and each new token attends to all up to itself. The text before this says Element (of qkv and out), Cached, kHeadDim
// and, for one token a row, kSplit: keys of a block. Legend: B batch, t new tokens, H heads, C = H * kHeadDim; qkv (B,
// t, 3C), cache (B, capacity, 2C) with k | v.
#include "backend/cuda/kernels/storage.cuh"

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
constexpr int kThreads = 512, kKeysAtOnce = kThreads / kKeyLanes;

/// Column of element i of a lane's load l; from kHeadDim on there is none.
__device__ inline int column_of(int lane, int l) { return (l * kKeyLanes + lane) * kLoad; }

template <typename Combine>
__device__ inline float combine_block(float x, float* shared, Combine combine) {
  for (int mask = 16; mask > 0; mask /= 2) x = combine(x, __shfl_xor_sync(0xffffffffu, x, mask));
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  x = shared[0];
  for (int warp = 1; warp < kThreads / 32; ++warp) x = combine(x, shared[warp]);
  return x;
}

/// What a block found of its keys: the largest score, the sum of e^(score - top), and the values weighed by those.
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
  const float kNone = __int_as_float(0xff800000);  // -infinity
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

// One token a row: a block stores the token's k and v, if they are among its keys, and attends to those. Where one block
// has all keys, `splits` is null. Grid: (capacity / kSplit, up, H, B).
extern "C" __global__ void __launch_bounds__(tokamak::kThreads)
    decode_one(const tokamak::Element* __restrict__ qkv, tokamak::Cached* cache, tokamak::Element* __restrict__ out,
               tokamak::Split* __restrict__ splits, tokamak::DecodeArguments a) {
  using namespace tokamak;
  begin_kernel();
  __shared__ float weights[kSplit], sums[kThreads / 32][kHeadDim], warps[kThreads / 32];
  const float kNone = __int_as_float(0xff800000);  // -infinity
  int lane = threadIdx.x % kKeyLanes, group = threadIdx.x / kKeyLanes;
  int64_t b = blockIdx.z, width = int64_t(a.heads) * kHeadDim, head = int64_t(blockIdx.y) * kHeadDim;
  const Element* token = qkv + b * 3 * width + head;
  Cached* keys = cache + b * a.capacity * 2 * width + head;
  int end = a.fits(b, 0) ? a.place(b, 0) + 1 : 0, first = max(int(blockIdx.x) * kSplit, a.first(end));
  int count = min(end, int(blockIdx.x + 1) * kSplit) - first;  // of this block's keys
  if (count > 0 && first + count == end)
    for (int c = threadIdx.x; c < 2 * kHeadDim; c += kThreads) {
      int64_t at = c < kHeadDim ? c : width + c - kHeadDim;
      from_float(to_float(token[width + at]), keys[(end - 1) * 2 * width + at]);
    }
  float q[kLoads][kLoad];
#pragma unroll
  for (int l = 0; l < kLoads; ++l)
#pragma unroll
    for (int i = 0; i < kLoad; ++i)
      q[l][i] = column_of(lane, l) < kHeadDim ? to_float(token[column_of(lane, l) + i]) * a.scale : 0.0f;
  __syncthreads();

  float top = kNone, sum = 0;
#pragma unroll 4
  for (int base = 0; base < count; base += kKeysAtOnce) {
    int j = base + group;
    float score = 0;
#pragma unroll
    for (int l = 0; l < kLoads; ++l) {
      if (j >= count || column_of(lane, l) >= kHeadDim) continue;
      const Cached* from = keys + int64_t(first + j) * 2 * width + column_of(lane, l);
      Vector<Cached, kLoad> k = *reinterpret_cast<const Vector<Cached, kLoad>*>(from);
#pragma unroll
      for (int i = 0; i < kLoad; ++i) score = fmaf(q[l][i], to_float(k[i]), score);
    }
#pragma unroll
    for (int mask = kKeyLanes / 2; mask > 0; mask /= 2) score += __shfl_xor_sync(0xffffffffu, score, mask);
    if (j >= count) continue;
    if (lane == 0) weights[j] = score;
    top = fmaxf(top, score);
  }
  top = combine_block(top, warps, [](float x, float y) { return fmaxf(x, y); });
  for (int j = threadIdx.x; j < count; j += kThreads) sum += weights[j] = expf(weights[j] - top);
  sum = combine_block(sum, warps, [](float x, float y) { return x + y; });

  float value[kLoads][kLoad] = {};
#pragma unroll 4
  for (int j = group; j < count; j += kKeysAtOnce) {
#pragma unroll
    for (int l = 0; l < kLoads; ++l) {
      if (column_of(lane, l) >= kHeadDim) continue;
      const Cached* from = keys + int64_t(first + j) * 2 * width + width + column_of(lane, l);
      Vector<Cached, kLoad> v = *reinterpret_cast<const Vector<Cached, kLoad>*>(from);
#pragma unroll
      for (int i = 0; i < kLoad; ++i) value[l][i] = fmaf(weights[j], to_float(v[i]), value[l][i]);
    }
  }
#pragma unroll
  for (int l = 0; l < kLoads; ++l)
#pragma unroll
    for (int i = 0; i < kLoad; ++i) {
#pragma unroll
      for (int mask = 16; mask >= kKeyLanes; mask /= 2)
        value[l][i] += __shfl_xor_sync(0xffffffffu, value[l][i], mask);
      if (threadIdx.x % 32 < kKeyLanes && column_of(lane, l) < kHeadDim)
        sums[threadIdx.x / 32][column_of(lane, l) + i] = value[l][i];
    }
  __syncthreads();
  Split* split = splits ? splits + (b * a.heads + blockIdx.y) * gridDim.x + blockIdx.x : nullptr;
  for (int c = threadIdx.x; c < kHeadDim; c += kThreads) {
    float y = 0;
    for (int warp = 0; warp < kThreads / 32; ++warp) y += sums[warp][c];
    if (split)
      split->value[c] = y;
    else
      from_float(y / sum, out[b * width + head + c]);  // nothing fits: 0 / 0
  }
  if (split && threadIdx.x == 0) split->top = top, split->sum = sum;
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
  auto weight = [&](int s) { return mine[s].sum > 0 ? expf(mine[s].top - top) : 0.0f; };
  for (int s = 0; s < count; ++s) sum = fmaf(mine[s].sum, weight(s), sum);
  for (int c = threadIdx.x; c < kHeadDim; c += 128) {
    float y = 0;
    for (int s = 0; s < count; ++s) y = fmaf(mine[s].value[c], weight(s), y);
    from_float(y / sum, out[row * kHeadDim + c]);
  }
}
