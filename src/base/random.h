// Counter-based random numbers: a pure function of (key, counter), so the same bits come out for any tiling, thread
// count or restart. Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tokamak {

/// Four independent 32-bit words for one counter value. 7 rounds are the fewest that pass TestU01's BigCrush.
template <int kRounds = 10>
std::array<uint32_t, 4> philox4x32(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0) {
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  uint32_t c0 = uint32_t(counter_low), c1 = uint32_t(counter_low >> 32);
  uint32_t c2 = uint32_t(counter_high), c3 = uint32_t(counter_high >> 32);
  for (int round = 0; round < kRounds; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    uint32_t n0 = uint32_t(p1 >> 32) ^ c1 ^ k0, n2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c1 = uint32_t(p1);
    c3 = uint32_t(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// Uniform in [0, 1) with 24 bits, exact in float.
inline float uniform_float(uint32_t bits) { return float(bits >> 8) * 0x1p-24f; }

/// Key of the random numbers of one training step.
inline uint64_t step_key(int32_t seed, int32_t step) { return uint64_t(uint32_t(step)) << 32 | uint32_t(seed); }

/// The uniform number of one element of a tensor; `random_stream` tells the tensors of a step apart.
inline float uniform_element(uint64_t key, int64_t element, uint64_t random_stream) {
  return uniform_float(philox4x32(key, uint64_t(element / 4), random_stream)[std::size_t(element % 4)]);
}

}  // namespace tokamak
