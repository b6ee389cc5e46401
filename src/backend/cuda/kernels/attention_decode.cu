// A step of generation: the k and v of the new tokens go into the cache behind the position[b] tokens that lie there,
// and each new token attends to all up to itself. The text before this says Element (of qkv and out), Cached, kHeadDim
// and, for one token a row, kSplit: keys of a block, kEarly: cache and position may be read while the kernel before
// this one runs, kTensor (kernels/decode_keys.cuh), and of a link of a chain (kLinked) kAwaits: qkv is awaited. Legend:
// B batch, t new tokens, H heads, C = H * kHeadDim; qkv (B, t, 3C), cache (B, capacity, 2C) with k | v.
#include "backend/cuda/kernels/chain.cuh"
#include "backend/cuda/kernels/decode_keys.cuh"

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

__device__ inline void store_attention(float x, Element* to) {
  Element y;
  from_float(x, y);
  if constexpr (kLinked)
    hand_over(y, to);
  else
    *to = y;
}

/// What a block found of its keys, as in Parts.
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
  __shared__ Parts parts;
  __shared__ Token token;
  constexpr float kLog2E = 1.44269504f;
  int64_t b = blockIdx.z, width = int64_t(a.heads) * kHeadDim, head = int64_t(blockIdx.y) * kHeadDim;
  Cached* of_head = cache + b * a.capacity * 2 * width + head;
  int end = a.fits(b, 0) ? a.place(b, 0) + 1 : 0, first = max(int(blockIdx.x) * kSplit, a.first(end));
  int count = min(end, int(blockIdx.x + 1) * kSplit) - first;  // of this block's keys
  const bool has_token = count > 0 && first + count == end;
  BlockKeys keys{{of_head + int64_t(first) * 2 * width, width, has_token ? count - 1 : count}};
  keys.start();
  if (!kAwaits && kEarly) begin_kernel();

  const Element* of_token = qkv + b * 3 * width + head;
  Cached* place = of_head + int64_t(end - 1) * 2 * width;
  if (!has_token && threadIdx.x == 0) token.score = kNone;
  for (int c = threadIdx.x; c < 3 * kHeadDim; c += kThreads) {
    int part = c / kHeadDim, column = c % kHeadDim;
    const Element* from = of_token + part * width + column;
    Element x = kAwaits ? await_element(from) : *from;
    if (part == 0) {
      token.query[column] = x;
    } else {
      Cached& y = (part == 1 ? token.key : token.value)[column];
      from_float(to_float(x), y);
      if (has_token) place[(part - 1) * width + column] = y;
    }
  }
  __syncthreads();
  if (threadIdx.x / 32 == kParts - 1 && has_token) token.find_score(a.scale * kLog2E);
  keys.attend(token.query, a.scale * kLog2E);
  keys.put(parts);
  __syncthreads();
  Split* split = splits ? splits + (b * a.heads + blockIdx.y) * gridDim.x + blockIdx.x : nullptr;
  constexpr int kColumns = kThreads / kTeam;
#pragma unroll 1
  for (int begin = 0; begin < kHeadDim; begin += kColumns) {
    int c = begin + threadIdx.x / kTeam;
    Column found(parts, token, min(c, kHeadDim - 1));
    if (threadIdx.x % kTeam != 0 || c >= kHeadDim) continue;
    if (!split) {
      store_attention(found.value / found.sum, out + b * width + head + c);  // nothing fits: 0 / 0
    } else {
      split->value[c] = found.value;
      if (c == 0) split->top = found.top, split->sum = found.sum;
    }
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
