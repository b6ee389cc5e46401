// Vocabularies for tests: the bytes (each its own id), the given merges, then <|endoftext|>.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "data/vocabulary.h"

namespace tokamak {

inline Vocabulary small_vocabulary(const std::vector<std::pair<std::string, std::string>>& merges) {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(1, char(byte));
  auto id = [&](const std::string& token) {
    return int32_t(std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), token) - vocabulary.tokens.begin());
  };
  for (const auto& [left, right] : merges) {
    vocabulary.merges.push_back({id(left), id(right), int32_t(vocabulary.tokens.size())});
    vocabulary.tokens.push_back(left + right);
  }
  vocabulary.special = {int32_t(vocabulary.tokens.size())};
  vocabulary.tokens.emplace_back(kEndOfText);
  add_markers(vocabulary);
  return vocabulary;
}

/// The same with one more token, an added one that is found in text.
inline Vocabulary with_added_token(Vocabulary vocabulary, const std::string& text, AddedToken token) {
  token.id = int32_t(vocabulary.tokens.size());
  vocabulary.special.push_back(token.id);
  vocabulary.tokens.push_back(text);
  vocabulary.added.push_back(token);
  return vocabulary;
}

}  // namespace tokamak
