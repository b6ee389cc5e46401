// Units of memory, in bytes.
#pragma once

namespace tokamak {

inline constexpr double kMiB = 0x1p20, kGiB = 0x1p30;

}  // namespace tokamak
