// What an element of a tensor adds to a digest of tensors' bits, for the CPU and in device code alike. The digest is
// the sum modulo 2^64, so that neither the order nor who adds which elements matters; where an element lies does.
#pragma once

#include <cstdint>

namespace tokamak {

/// `salt`: of the tensor; `index`: of the element in the whole tensor, row-major. Other bits in one place always add
/// something else: the steps are those of SplitMix64 (Steele, Lea, Flood, 2014), each of which can be undone.
inline uint64_t element_digest(uint64_t salt, uint64_t index, uint32_t bits) {
  uint64_t x = salt + (index + 1) * 0x9E3779B97F4A7C15u + bits;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

}  // namespace tokamak
