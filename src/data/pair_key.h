// The key of two neighbouring ids in the tables of merges.
#pragma once

#include <cstdint>

namespace tokamak {

inline uint64_t pair_key(int32_t left, int32_t right) { return uint64_t(uint32_t(left)) << 32 | uint32_t(right); }

}  // namespace tokamak
