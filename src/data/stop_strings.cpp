#include "data/stop_strings.h"

#include <algorithm>
#include <utility>

namespace tokamak {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) { std::erase(strings_, ""); }

std::string StopStrings::add(std::string_view piece) {
  if (found_) return "";
  pending_ += piece;
  size_t first = std::string::npos;
  for (const std::string& string : strings_) first = std::min(first, pending_.find(string));
  found_ = first != std::string::npos;
  size_t known = found_ ? first : pending_.size() - held_back();
  std::string text = pending_.substr(0, known);
  pending_.erase(0, found_ ? pending_.size() : known);
  return text;
}

std::string StopStrings::rest() { return std::exchange(pending_, ""); }

std::string typed_string(std::string_view text) {
  std::string string;
  for (size_t i = 0; i < text.size(); ++i) {
    char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    char meant = next == 'n' ? '\n' : next == 't' ? '\t' : next == '\\' ? '\\' : '\0';
    string += meant ? meant : text[i];
    i += meant ? 1 : 0;
  }
  return string;
}

// The longest end of what is there that a stop string begins with.
size_t StopStrings::held_back() const {
  size_t longest = 0;
  for (const std::string& string : strings_)
    for (size_t length = std::min(string.size() - 1, pending_.size()); length > longest; --length)
      if (std::string_view(pending_).ends_with(std::string_view(string).substr(0, length))) longest = length;
  return longest;
}

}  // namespace tokamak
