// Bytes of any kind as text on one line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tokamak {

/// As one line of JSON; bytes in strings that are no UTF-8 become U+FFFD.
inline std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// As JSON quotes it.
inline std::string quote(const std::string& text) { return dump(text); }

}  // namespace tokamak
