// Division of sizes, rounded up.
#pragma once

#include <cstdint>

namespace tokamak {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t x, int64_t multiple) { return ceil_div(x, multiple) * multiple; }

}  // namespace tokamak
