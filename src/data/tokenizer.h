// Byte-level BPE: text to token ids and back, exactly as tiktoken does for the same vocabulary and pattern, and with
// added tokens as Hugging Face's library does. Any bytes are accepted (text that is not UTF-8 too), and decoding gives
// them back unchanged, but for white space that added tokens strip, and in the form NFC where a vocabulary asks for it.
// Files of vocabularies are in data/tokenizer_files.h. For examples see tests/data/tokenizer_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/added_tokens.h"
#include "data/bpe.h"
#include "data/vocabulary.h"
#include "data/word_block.h"
#include "data/word_table.h"

namespace tokamak {

class Tokenizer {
 public:
  /// Takes a vocabulary; a UserError if one of the 256 bytes has no token.
  explicit Tokenizer(Vocabulary vocabulary);

  int32_t vocab_size() const { return int32_t(vocabulary_.tokens.size()); }
  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// The id of the marker between documents (<|endoftext|>, or Llama 3's <|end_of_text|>); a UserError if the
  /// vocabulary has none.
  int32_t end_of_text() const;
  bool has_end_of_text() const { return end_of_text_.has_value(); }

  /// Text to ids. Markers such as <|endoftext|> in the text are ordinary text unless `allow_special` is set.
  std::vector<int32_t> encode(std::string_view text, bool allow_special = false) const;

  /// Whether a text in parts has the ids of the whole only where it is cut at places for a cut (data/word_border.h):
  /// where it may have added tokens other than markers, or is brought into another form.
  bool needs_cuts() const { return added_.finds_any(false) || vocabulary_.nfc; }

  /// An added token for which a text must not be cut into parts (AddedTokens::needs_whole_text); empty: none.
  const std::string& needs_whole_text() const { return added_.needs_whole_text(); }

  /// Ids to bytes; a UserError for an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;

 private:
  friend class Encoder;

  WordTable one_token_words(const std::vector<bool>& is_special) const;
  void merge_bytes(std::string_view word, std::vector<int32_t>& ids) const;

  Vocabulary vocabulary_;
  BpeMerges merges_;
  AddedTokens added_;
  WordTable words_;  // words that become one token
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
  /// place where the next part begins. With added tokens that text may have, this is the next place for a cut, as the
  /// text is cut there (Tokenizer::needs_cuts); so no token may need the whole text.
  size_t append_part(std::string_view text, size_t begin, size_t limit, std::vector<int32_t>& ids);

  /// As append(), but markers become their own ids.
  void append_with_special(std::string_view text, std::vector<int32_t>& ids);

 private:
  static constexpr size_t kInlineIds = 3, kMoreIds = 12;

  /// Most words are one token, few have more than three.
  struct CachedWord {
    WordBlock key = {0, 0};                    // of length 0 if empty
    std::array<int32_t, kInlineIds> ids = {};  // or the first is a place in more_ids_
    uint32_t count = 0;
  };

  /// The words of one hash, in one cache line.
  struct alignas(64) CacheSet {
    CachedWord recent, older;
  };

  /// Room for ids before they go to the caller's vector.
  struct Output {
    static constexpr size_t kSize = 4096;
    std::array<int32_t, kSize> ids;
    size_t count = 0;
  };

  void append(std::string_view text, bool allow_special, std::vector<int32_t>& ids);
  size_t append_words(std::string_view text, size_t begin, size_t limit, std::vector<int32_t>& ids);
  void append_key(WordBlock key, std::string_view word, std::vector<int32_t>& ids);
  void append_long_word(std::string_view word, std::vector<int32_t>& ids);
  bool fill(CacheSet& set, WordBlock key, std::string_view word);
  void encode_word(std::string_view word, WordBlock key);
  void flush(std::vector<int32_t>& ids);

  const Tokenizer& tokenizer_;
  int cache_bits_;
  std::vector<CacheSet> cache_;  // allocated with the first text
  std::vector<std::array<int32_t, kMoreIds>> more_ids_;
  std::vector<int32_t> free_more_ids_;  // places there that no word has any more
  std::vector<int32_t> word_ids_;
  Output output_;
};

}  // namespace tokamak
