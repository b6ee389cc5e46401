#include "data/tokenizer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "data/byte_alphabet.h"
#include "data/scan_words.h"
#include "data/word_border.h"

namespace tokamak {

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)), merges_(vocabulary_.merges, vocabulary_.tied_merges), added_(vocabulary_) {
  byte_ids_.fill(-1);
  std::vector<bool> is_special(vocabulary_.tokens.size());
  for (int32_t id : vocabulary_.special) {
    is_special[size_t(id)] = true;
    const std::string& token = vocabulary_.tokens[size_t(id)];
    if (token == kEndOfText || (token == kLlama3EndOfText && !end_of_text_)) end_of_text_ = id;
  }
  for (size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
    const std::string& token = vocabulary_.tokens[id];
    if (token.size() == 1 && !is_special[id]) byte_ids_[uint8_t(token[0])] = int32_t(id);
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte_ids_[byte] < 0)
      user_error(
          "[tokenizer] expected a token for each of the 256 bytes, got none for byte {}; this is not a "
          "byte-level vocabulary: use GPT-2's or one made by `prepare`",
          byte);
  }
  words_ = one_token_words(is_special);
}

/// Most words are one token, and looking a word up is faster than merging it; but merging decides, where the vocabulary
/// does not say otherwise: a token need not be what its own bytes merge into.
WordTable Tokenizer::one_token_words(const std::vector<bool>& is_special) const {
  WordTable words(vocabulary_.tokens.size());
  std::vector<int32_t> ids;
  for (size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
    const std::string& token = vocabulary_.tokens[id];
    if (token.empty() || id + size_t(vocabulary_.only_added) >= vocabulary_.tokens.size()) continue;
    if (is_special[id] && (!vocabulary_.whole_words || spell_bytes(token) != token)) continue;
    if (!vocabulary_.whole_words) merge_bytes(token, ids);
    if (vocabulary_.whole_words || ids == std::vector{int32_t(id)}) words.add(token, int32_t(id));
  }
  return words;
}

void Tokenizer::merge_bytes(std::string_view word, std::vector<int32_t>& ids) const {
  ids.clear();
  for (char c : word) ids.push_back(byte_ids_[uint8_t(c)]);
  merges_.apply(ids);
}

int32_t Tokenizer::end_of_text() const {
  if (!end_of_text_)
    user_error("[tokenizer] expected a marker {} in the vocabulary, got none; add it as a special token", kEndOfText);
  return *end_of_text_;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool allow_special) const {
  std::vector<int32_t> ids;
  Encoder encoder(*this, text.size());
  allow_special ? encoder.append_with_special(text, ids) : encoder.append(text, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (int32_t id : ids) {
    if (id < 0 || id >= vocab_size())
      user_error("[tokenizer] expected ids from 0 to {}, got {}; decode with the vocabulary that encoded them",
                 vocab_size() - 1, id);
    text += vocabulary_.tokens[size_t(id)];
  }
  return text;
}

Encoder::Encoder(const Tokenizer& tokenizer, size_t text_bytes)
    : tokenizer_(tokenizer), cache_bits_(std::clamp(int(std::bit_width(text_bytes / 8)), 3, 14)) {}

void Encoder::append(std::string_view text, std::vector<int32_t>& ids) { append(text, false, ids); }
void Encoder::append_with_special(std::string_view text, std::vector<int32_t>& ids) { append(text, true, ids); }

void Encoder::append(std::string_view text, bool allow_special, std::vector<int32_t>& ids) {
  auto append_piece = [&](std::string_view piece, int32_t id) {
    id >= 0 ? ids.push_back(id) : void(append_words(piece, 0, piece.size(), ids));
  };
  if (tokenizer_.added_.finds_any(allow_special) || tokenizer_.vocabulary_.nfc)
    tokenizer_.added_.split(text, allow_special, append_piece);
  else
    append_piece(text, -1);
}

size_t Encoder::append_part(std::string_view text, size_t begin, size_t limit, std::vector<int32_t>& ids) {
  if (!tokenizer_.needs_cuts()) return append_words(text, begin, limit, ids);
  limit = std::min(limit, text.size());
  while (limit < text.size() && !is_cut(text, limit)) ++limit;
  append(text.substr(begin, limit - begin), ids);
  return limit;
}

size_t Encoder::append_words(std::string_view text, size_t begin, size_t limit, std::vector<int32_t>& ids) {
  if (cache_.empty()) cache_.resize(size_t(1) << cache_bits_);
  auto append = [&](std::string_view word, WordBlock key) {
    key_length(key) > 0 ? append_key(key, word, ids) : append_long_word(word, ids);
  };
  size_t end = scan_words(tokenizer_.vocabulary_.pretokenizer, text, begin, limit, append);
  flush(ids);
  return end;
}

void Encoder::flush(std::vector<int32_t>& ids) {
  ids.insert(ids.end(), output_.ids.begin(), output_.ids.begin() + ptrdiff_t(output_.count));
  output_.count = 0;
}

inline void Encoder::append_key(WordBlock key, std::string_view word, std::vector<int32_t>& ids) {
  CacheSet& set = cache_[hash_key(key) >> (64 - cache_bits_)];
  if (set.recent.key != key) {
    if (set.older.key == key) {
      std::swap(set.recent, set.older);
    } else if (!fill(set, key, word)) {
      flush(ids);
      ids.insert(ids.end(), word_ids_.begin(), word_ids_.end());
      return;
    }
  }
  if (output_.count + kMoreIds > Output::kSize) flush(ids);
  const CachedWord& cached = set.recent;
  int32_t* out = output_.ids.data() + output_.count;
  std::copy(cached.ids.begin(), cached.ids.end(), out);  // all, as a fixed number is faster to copy
  if (cached.count > kInlineIds) std::ranges::copy(more_ids_[size_t(cached.ids[0])], out);
  output_.count += cached.count;
}

void Encoder::append_long_word(std::string_view word, std::vector<int32_t>& ids) {
  encode_word(word, {0, 0});
  flush(ids);
  ids.insert(ids.end(), word_ids_.begin(), word_ids_.end());
}

/// Remembers a word in place of the older one; false if it has too many ids, which then are in word_ids_ only.
bool Encoder::fill(CacheSet& set, WordBlock key, std::string_view word) {
  encode_word(word, key);
  if (word_ids_.size() > kMoreIds) return false;
  CachedWord evicted = std::exchange(set.older, set.recent);
  set.recent = {key, {}, uint32_t(word_ids_.size())};
  if (evicted.count > kInlineIds) free_more_ids_.push_back(evicted.ids[0]);
  if (word_ids_.size() <= kInlineIds) {
    std::ranges::copy(word_ids_, set.recent.ids.begin());
    return true;
  }
  if (free_more_ids_.empty()) {
    free_more_ids_.push_back(int32_t(more_ids_.size()));
    more_ids_.emplace_back();
  }
  set.recent.ids[0] = free_more_ids_.back();
  free_more_ids_.pop_back();
  std::ranges::copy(word_ids_, more_ids_[size_t(set.recent.ids[0])].begin());
  return true;
}

/// Leaves a word's ids in word_ids_.
void Encoder::encode_word(std::string_view word, WordBlock key) {
  if (int32_t id = tokenizer_.words_.find(word, key); id >= 0) {
    word_ids_.assign(1, id);
  } else {
    tokenizer_.merge_bytes(word, word_ids_);
  }
}

}  // namespace tokamak
