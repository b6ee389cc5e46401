// Texts of graphs that differ in one place.
#pragma once

#include "base/error.h"

#include <string>

namespace tokamak::test {

/// `text` with every `from` replaced, of which there must be one.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  TOKAMAK_CHECK(at != text.npos, "'{}' is not in the text", from);
  for (; at != text.npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

}  // namespace tokamak::test
