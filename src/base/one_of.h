// Whether a word is one of few.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace tokamak {

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace tokamak
