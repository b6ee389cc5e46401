// Numbers as people read them in tables and messages.
#pragma once

#include <string>

namespace tokamak {

std::string format_bytes(double bytes);   // 12 B, 3.4 KiB, 1.25 GiB
std::string format_count(double count);   // 12, 3.40 k, 1.25 G, 2.10 T

}  // namespace tokamak
