// Bytes of any kind as text on one line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"

namespace tokamak {

/// As JSON quotes it; bytes that are no UTF-8 become U+FFFD.
inline std::string quote(const std::string& text) { return format_json(nlohmann::json(text)); }

}  // namespace tokamak
