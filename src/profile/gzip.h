// Text as the content of a .gz file. Where the program was built without zlib there is none.
// Tests: tests/profile/trace_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

bool has_gzip();
std::string gzip(std::string_view text);

}  // namespace tokamak
