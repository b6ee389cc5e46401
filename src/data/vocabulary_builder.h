// Collects a vocabulary from the spelled tokens and merges of a file, and checks that they belong together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/vocabulary.h"

namespace tokamak {

/// The parts that all file forms have, in GPT-2's spelling (data/byte_alphabet.h). Tokens that are neither a byte nor
/// made by a merge make no part of words, unless words that are tokens need no merges.
class VocabularyBuilder {
 public:
  /// `name` is the file, for messages.
  explicit VocabularyBuilder(std::string_view name) : name_(name) {}

  /// A token by its spelling. Ids may come in any order; build() checks that they are dense.
  void add_token(std::string_view spelling, int64_t id);

  /// A marker by its own text; it may have been added as a token already.
  void add_special(std::string_view text, int64_t id) { add_added(text, id, {}); }

  /// The same for any added token.
  void add_added(std::string_view text, int64_t id, AddedToken token);

  /// The id of a token by its spelling, -1 if it was not added by add_token().
  int32_t find_token(std::string_view spelling) const;

  /// How many were.
  int32_t token_count() const { return int32_t(ids_.size()); }

  /// The next merge in rank, "left right" by spelling.
  void add_merge(std::string_view pair);
  void add_merge(std::string_view left, std::string_view right);

  /// One more than the largest id so far.
  int32_t size() const { return int32_t(spellings_.size()); }

  /// Takes words that are tokens as they are (Vocabulary::whole_words).
  void set_whole_words() { whole_words_ = true; }

  /// Ids above all tokens that are not taken by a marker become markers <|reserved_ID|>: models leave such room.
  Vocabulary build();

 private:
  // Not noexcept: so the tables keep the hashes of their keys, instead of taking them again and again.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  int32_t id_of(std::string_view spelling, std::string_view left, std::string_view right) const;
  void store(std::string_view spelling, int64_t id);
  bool is_ordinary(size_t id, bool made, const AddedToken* added) const;
  void reserve_free_ids();

  std::string name_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::vector<std::string> spellings_;  // by id; empty: none yet
  std::vector<AddedToken> added_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> added_ids_;
  std::vector<Merge> merges_;
  std::string joined_;  // the result of the last merge
  bool whole_words_ = false;
};

}  // namespace tokamak
