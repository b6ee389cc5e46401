// Byte-level BPE: text to token ids and back, exactly as tiktoken's gpt2 does for the same vocabulary.
// Any bytes are accepted (text that is not UTF-8 too), and decoding gives them back unchanged.
// Files of vocabularies are in data/tokenizer_files.h. For examples see tests/data/tokenizer_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/bpe.h"
#include "data/vocabulary.h"

namespace tokamak {

class Tokenizer {
 public:
  /// Takes a vocabulary; a UserError if one of the 256 bytes has no token.
  explicit Tokenizer(Vocabulary vocabulary);

  int32_t vocab_size() const { return int32_t(vocabulary_.tokens.size()); }
  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// The id of <|endoftext|>; a UserError if the vocabulary has none.
  int32_t end_of_text() const;

  /// Text to ids. Markers such as <|endoftext|> in the text are ordinary text unless `allow_special` is set.
  std::vector<int32_t> encode(std::string_view text, bool allow_special = false) const;

  /// Ids to bytes; a UserError for an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;

 private:
  friend class Encoder;

  Vocabulary vocabulary_;
  BpeMerges merges_;
  std::array<int32_t, 256> byte_ids_;
  std::optional<int32_t> end_of_text_;
};

/// Encodes many texts with one tokenizer, remembering short words. One per thread; the tokenizer must outlive it.
class Encoder {
 public:
  /// `text_bytes` is about how much text will come; for little text a small memory of words is made.
  explicit Encoder(const Tokenizer& tokenizer, size_t text_bytes = size_t(-1));

  /// Appends the ids of a text, in which markers are ordinary text.
  void append(std::string_view text, std::vector<int32_t>& ids);

  /// The same for the words that begin in [begin, limit) of a text, so that a long one can be done in parts; gives the
  /// place where the next part begins.
  size_t append_part(std::string_view text, size_t begin, size_t limit, std::vector<int32_t>& ids);

  /// As append(), but markers become their own ids.
  void append_with_special(std::string_view text, std::vector<int32_t>& ids);

 private:
  static constexpr size_t kCachedBytes = 16;
  static constexpr size_t kCachedIds = 6;

  struct CachedWord {
    std::array<uint64_t, 2> bytes = {};  // zero-padded
    std::array<int32_t, kCachedIds> ids;
    uint8_t length = 0;  // 0: empty
    uint8_t count = 0;
  };

  void append_word(std::string_view word, std::vector<int32_t>& ids);
  void merge(std::string_view word);

  const Tokenizer& tokenizer_;
  int cache_bits_;
  std::vector<CachedWord> cache_;  // direct-mapped, allocated with the first word that needs it
  std::vector<int32_t> word_ids_;
};

}  // namespace tokamak
