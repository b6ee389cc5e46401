#include "data/permutation.h"

#include <bit>

#include "base/error.h"
#include "base/random.h"

namespace tokamak {

namespace {

// Four rounds make a pseudo-random permutation of the halves (Luby and Rackoff); two more for very small halves.
constexpr uint64_t kRounds = 6;

}  // namespace

Permutation::Permutation(int64_t size, uint64_t seed, uint64_t epoch)
    : size_(size), seed_(seed), epoch_(epoch), half_bits_((std::bit_width(uint64_t(size) - 1) + 1) / 2) {
  TOKAMAK_CHECK(size > 0, "a permutation of {} elements", size);
}

int64_t Permutation::operator()(int64_t index) const {
  TOKAMAK_CHECK(index >= 0 && index < size_, "element {} of {}", index, size_);
  // The domain is at most four times too large, so four steps are expected at worst.
  uint64_t value = uint64_t(index);
  do value = encrypt(value);
  while (value >= uint64_t(size_));
  return int64_t(value);
}

uint64_t Permutation::encrypt(uint64_t value) const {
  uint64_t mask = (uint64_t(1) << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    uint64_t mixed = left ^ (philox4x32(seed_, right, epoch_ << 8 | round)[0] & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

}  // namespace tokamak
