// Bytes of any kind as text on one line.
#pragma once

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/printable.h"

namespace tokamak {

/// As JSON quotes it, without what a terminal would obey; bytes that are no UTF-8 become U+FFFD.
inline std::string quote(const std::string& text) { return printable(format_json(nlohmann::json(text))); }

/// The same without the quotes, for names in a table.
inline std::string one_line(const std::string& text) {
  std::string quoted = quote(text);
  return quoted.substr(1, quoted.size() - 2);
}

/// A word as a shell takes it; with what a terminal would obey as bash and the like write it, $'\x1b'.
inline std::string shell_word(const std::string& word) {
  bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_-+./:@%=,").find(c) != std::string::npos;
  });
  if (plain) return word;
  bool escapes = printable(word) != word;
  std::string quoted = escapes ? "$'" : "'";
  if (escapes) {
    for (char c : word) quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    return printable(quoted) + "'";
  }
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace tokamak
