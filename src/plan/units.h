// Numbers as people read them in tables and messages.
#pragma once

#include <string>
#include <string_view>

namespace tokamak {

std::string format_bytes(double bytes);                              // 12 B, 3.40 KiB, 1.25 GiB
std::string format_count(double count, std::string_view unit = {});  // 12, 3.40 k, 1.25 GFLOP/s

}  // namespace tokamak
