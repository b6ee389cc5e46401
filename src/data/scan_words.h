// The words of a text one after the other, with the frequent kind (ASCII letters after a space) found quickly.
#pragma once

#include <algorithm>
#include <string_view>

#include "data/pretokenizer.h"
#include "data/word_block.h"

namespace tokamak {

/// Calls on_word(word, key) for the words that begin in [begin, limit) of a text and gives the end of the last; `key`
/// is the word_key() of words of up to kMaxKeyBytes, and one of length 0 for longer ones.
template <typename OnWord>
size_t scan_words(Pretokenizer pretokenizer, std::string_view text, size_t begin, size_t limit, OnWord&& on_word) {
  const WordEnd word_end = pretokenizer_info(pretokenizer).word_end;
  const bool cased = pretokenizer == Pretokenizer::kO200k || pretokenizer == Pretokenizer::kTekken;
  limit = std::min(limit, text.size());
  size_t at = begin;
  while (at < limit) {
    WordBlock block = load_block(text.substr(at));
    size_t length = text.size() - at > kMaxKeyBytes ? ascii_word_length(block) : 0;
    if (length == 0 || (cased && !ends_there_when_cased(block, length))) length = word_end(text, at) - at;
    on_word(text.substr(at, length), length <= kMaxKeyBytes ? word_key(block, length) : WordBlock{0, 0});
    at += length;
  }
  return at;
}

}  // namespace tokamak
