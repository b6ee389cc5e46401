// A step of generation: the k and v of the new tokens go into the cache behind the `position` tokens that lie there,
// and each new token attends to all up to itself. The text before this says Element (of qkv and out), Cached and
// kHeadDim. Legend: B batch, t new tokens, H heads, C = H * kHeadDim; qkv (B, t, 3C), cache (B, capacity, 2C) with k |
// v.
#include "backend/cuda/kernels/storage.cuh"

namespace tokamak {

/// As DecodeArguments in backend/cuda/attention_decode_kernel.cpp.
struct DecodeArguments {
  int32_t time, heads, capacity;
  float scale;
  const int32_t* position;

  // The host does not see the position before the launch, so what does not fit is not written, and the output is NaN.
  __device__ bool fits() const { return *position >= 0 && *position + time <= capacity; }
};

constexpr int kWarps = 8, kPerLane = (kHeadDim + 31) / 32;

// Softmax of the keys seen so far and the values that it weighs; each lane has every 32nd column.
struct Partial {
  float top, sum, value[kPerLane];
};

}  // namespace tokamak

// A thread per element. Grid: enough blocks of 256 for B * t * 2C.
extern "C" __global__ void __launch_bounds__(256)
    append_to_cache(const tokamak::Element* __restrict__ qkv, tokamak::Cached* __restrict__ cache, int64_t elements,
                    tokamak::DecodeArguments a) {
  using namespace tokamak;
  int64_t e = int64_t(blockIdx.x) * 256 + threadIdx.x, width = int64_t(a.heads) * kHeadDim;
  if (e >= elements || !a.fits()) return;
  int64_t column = e % (2 * width), row = e / (2 * width), b = row / a.time, t = row % a.time;
  from_float(to_float(qkv[row * 3 * width + width + column]),
             cache[(b * a.capacity + *a.position + t) * 2 * width + column]);
}

// A block per query and head, a key per warp at a time. Grid: (t, H, B).
extern "C" __global__ void __launch_bounds__(256)
    attend_to_cache(const tokamak::Element* __restrict__ qkv, const tokamak::Cached* __restrict__ cache,
                    tokamak::Element* __restrict__ out, tokamak::DecodeArguments a) {
  using namespace tokamak;
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
  int end = a.fits() ? *a.position + int(blockIdx.x) + 1 : 0;
  for (int j = warp; j < end; j += kWarps) {
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
