// What an element of a tensor adds to a digest of tensors' bits, for the CPU and in device code alike. The digest is
// the sum modulo 2^64, so that neither the order nor who adds which elements matters; where an element lies does.
#pragma once

#include <cstdint>

namespace tokamak {

/// `salt`: of the tensor; `index`: of the element in the whole tensor, row-major. A product of 32 bits by 32, of the
/// element's bits and of two numbers that follow from its place, as in the hash NH (Black, Halevi, Krawczyk, Krovetz
/// and Rogaway, UMAC, 1999): the one that multiplies is odd, so that other bits in one place always add something else.
/// It costs a third of a mixing function's steps, and so hardly more than reading the elements.
inline uint64_t element_digest(uint64_t salt, uint64_t index, uint32_t bits) {
  uint32_t low = uint32_t(index), high = uint32_t(index >> 32);
  uint32_t added = (low + high * 0xC2B2AE3Du) * 0x9E3779B1u + uint32_t(salt);
  uint32_t factor = ((low + high * 0x27D4EB2Fu) * 0x85EBCA77u + uint32_t(salt >> 32)) | 1;
  return uint64_t(bits + added) * factor;
}

}  // namespace tokamak
