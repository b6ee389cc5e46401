// Ends a text at the first of some strings, while it is still being made. Tests: tests/data/stop_strings_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

class StopStrings {
 public:
  /// Empty ones are none.
  explicit StopStrings(std::vector<std::string> strings);

  /// More of the text. What of it is known to stand before every stop string, the beginning of which is held back until
  /// it is one or is not. Nothing once one was found.
  std::string add(std::string_view piece);

  /// What is held back when the text ends without one.
  std::string rest();

  bool found() const { return found_; }

 private:
  size_t held_back() const;

  std::vector<std::string> strings_;
  std::string pending_;
  bool found_ = false;
};

/// A string as it is typed: "\\n" is the end of a line, "\\t" a tab, "\\\\" a backslash.
std::string typed_string(std::string_view text);

}  // namespace tokamak
