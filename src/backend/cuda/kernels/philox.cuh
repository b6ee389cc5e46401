// The counter-based random numbers of base/random.h on the device: the same bits.
#pragma once

#include "backend/cuda/kernels/std.cuh"

namespace tokamak {

/// Four words of the counter (block, stream); rng is (seed, step). As philox4x32().
template <int kRounds>
__device__ inline uint4 philox_words(const int32_t* rng, int64_t block, uint64_t stream) {
  uint32_t k0 = uint32_t(rng[0]), k1 = uint32_t(rng[1]);
  uint32_t c0 = uint32_t(block), c1 = uint32_t(uint64_t(block) >> 32), c2 = uint32_t(stream);
  uint32_t c3 = uint32_t(stream >> 32);
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
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

/// Uniform in [0, 1) with 24 bits, exact.
__device__ inline float uniform_float(uint32_t bits) { return float(bits >> 8) * 0x1p-24f; }

}  // namespace tokamak
