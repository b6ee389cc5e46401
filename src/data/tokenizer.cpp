#include "data/tokenizer.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "data/pretokenizer.h"

namespace tokamak {

Tokenizer::Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)), merges_(vocabulary_.merges) {
  byte_ids_.fill(-1);
  std::vector<bool> is_special(vocabulary_.tokens.size());
  for (int32_t id : vocabulary_.special) {
    is_special[size_t(id)] = true;
    if (vocabulary_.tokens[size_t(id)] == kEndOfText) end_of_text_ = id;
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
}

int32_t Tokenizer::end_of_text() const {
  if (!end_of_text_)
    user_error("[tokenizer] expected a token {} in the vocabulary, got none; add it as a special token", kEndOfText);
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
    : tokenizer_(tokenizer), cache_bits_(std::clamp(int(std::bit_width(text_bytes / 8)), 4, 14)) {}

void Encoder::append(std::string_view text, std::vector<int32_t>& ids) { append_part(text, 0, text.size(), ids); }

size_t Encoder::append_part(std::string_view text, size_t begin, size_t limit, std::vector<int32_t>& ids) {
  size_t at = begin;
  while (at < std::min(limit, text.size())) {
    size_t end = word_end(text, at);
    append_word(text.substr(at, end - at), ids);
    at = end;
  }
  return at;
}

void Encoder::append_with_special(std::string_view text, std::vector<int32_t>& ids) {
  struct Marker {
    int32_t id;
    std::string_view text;
    size_t at;  // its next place
  };
  std::vector<Marker> markers;
  for (int32_t id : tokenizer_.vocabulary_.special) {
    std::string_view marker = tokenizer_.vocabulary_.tokens[size_t(id)];
    if (!marker.empty()) markers.push_back({id, marker, text.find(marker)});
  }
  size_t begin = 0;
  for (;;) {
    const Marker* first = nullptr;  // the leftmost one, the longest of those
    for (Marker& marker : markers) {
      if (marker.at < begin) marker.at = text.find(marker.text, begin);
      if (marker.at == text.npos) continue;
      if (!first || marker.at < first->at || (marker.at == first->at && marker.text.size() > first->text.size()))
        first = &marker;
    }
    if (!first) break;
    append(text.substr(begin, first->at - begin), ids);
    ids.push_back(first->id);
    begin = first->at + first->text.size();
  }
  append(text.substr(begin), ids);
}

void Encoder::append_word(std::string_view word, std::vector<int32_t>& ids) {
  if (word.size() == 1) {
    ids.push_back(tokenizer_.byte_ids_[uint8_t(word[0])]);
    return;
  }
  if (word.size() > kCachedBytes) {
    merge(word);
    ids.insert(ids.end(), word_ids_.begin(), word_ids_.end());
    return;
  }
  if (cache_.empty()) cache_.resize(size_t(1) << cache_bits_);
  std::array<uint64_t, 2> bytes = {};
  std::memcpy(bytes.data(), word.data(), word.size());
  uint64_t hash = (bytes[0] ^ (bytes[1] * 0xC2B2AE3D27D4EB4Fu) ^ word.size()) * 0x9E3779B97F4A7C15u;
  CachedWord& cached = cache_[(hash ^ hash >> 32) * 0x9E3779B97F4A7C15u >> (64 - cache_bits_)];
  if (cached.length != word.size() || cached.bytes != bytes) {
    merge(word);
    if (word_ids_.size() > kCachedIds) {
      ids.insert(ids.end(), word_ids_.begin(), word_ids_.end());
      return;
    }
    cached.bytes = bytes;
    cached.length = uint8_t(word.size());
    cached.count = uint8_t(word_ids_.size());
    std::copy(word_ids_.begin(), word_ids_.end(), cached.ids.begin());
  }
  ids.insert(ids.end(), cached.ids.begin(), cached.ids.begin() + cached.count);
}

void Encoder::merge(std::string_view word) {
  word_ids_.clear();
  for (char c : word) word_ids_.push_back(tokenizer_.byte_ids_[uint8_t(c)]);
  tokenizer_.merges_.apply(word_ids_);
}

}  // namespace tokamak
