// How tensors of several ranks become one. Tests: tests/graph/reduction_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace tokamak {

enum class Reduction : uint8_t { kSum, kMax };

std::string_view reduction_name(Reduction reduction);  // "sum", as in texts of graphs
Reduction parse_reduction(std::string_view name);      // throws UserError naming the known ones

}  // namespace tokamak
