// A shuffled order that is computed, not stored: element i of a pseudo-random permutation in constant time and memory.
#pragma once

#include <cstdint>

namespace tokamak {

/// A permutation of 0..size-1 chosen by (seed, epoch): a Feistel network over the next power of four, walked until it
/// lands inside (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
class Permutation {
 public:
  Permutation(int64_t size, uint64_t seed, uint64_t epoch);

  /// Where `index` (0..size-1) goes.
  int64_t operator()(int64_t index) const;

 private:
  uint64_t encrypt(uint64_t value) const;

  int64_t size_;
  uint64_t seed_;
  uint64_t epoch_;
  int half_bits_;
};

}  // namespace tokamak
