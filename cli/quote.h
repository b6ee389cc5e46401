// Bytes of any kind as text on one line.
#pragma once

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json.h"

namespace tokamak {

/// As JSON quotes it; bytes that are no UTF-8 become U+FFFD.
inline std::string quote(const std::string& text) { return format_json(nlohmann::json(text)); }

/// A word as a shell takes it.
inline std::string shell_word(const std::string& word) {
  bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_-+./:@%=,").find(c) != std::string::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace tokamak
