// The counter-based random numbers of base/random.h on the device: the same bits.
#pragma once

#include "backend/cuda/kernels/std.cuh"

namespace tokamak {

/// Four words of the counter (block, stream); rng is (seed, step). Philox4x32-10, see base/random.h.
__device__ inline uint4 philox_words(const int32_t* rng, int64_t block, uint64_t stream) {
  uint32_t k0 = uint32_t(rng[0]), k1 = uint32_t(rng[1]);
  uint32_t c0 = uint32_t(block), c1 = uint32_t(uint64_t(block) >> 32), c2 = uint32_t(stream);
  uint32_t c3 = uint32_t(stream >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    uint32_t n0 = __umulhi(0xCD9E8D57u, c2) ^ c1 ^ k0, n2 = __umulhi(0xD2511F53u, c0) ^ c3 ^ k1;
    c1 = 0xCD9E8D57u * c2;
    c3 = 0xD2511F53u * c0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// Four uniform numbers in [0, 1), those of elements 4 * block to 4 * block + 3 of the tensor `stream`.
__device__ inline float4 uniform_block(const int32_t* rng, int64_t block, uint64_t stream) {
  constexpr float kScale = 1.0f / 16777216.0f;
  uint4 w = philox_words(rng, block, stream);
  return {float(w.x >> 8) * kScale, float(w.y >> 8) * kScale, float(w.z >> 8) * kScale, float(w.w >> 8) * kScale};
}

/// The number of one element.
__device__ inline float uniform_element(const int32_t* rng, int64_t element, uint64_t stream) {
  float4 u = uniform_block(rng, element / 4, stream);
  int lane = int(element % 4);
  return lane == 0 ? u.x : lane == 1 ? u.y : lane == 2 ? u.z : u.w;
}

}  // namespace tokamak
