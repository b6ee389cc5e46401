// JSON that is nested so deep that whoever walks through it as a tree overflows the stack.
#pragma once

#include <string>

namespace tokamak {

inline std::string nested_lists(size_t depth) { return std::string(depth, '[').append(depth, ']'); }

}  // namespace tokamak
