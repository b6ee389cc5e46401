// Trains a byte-level BPE vocabulary from text: Sennrich et al., "Neural machine translation of rare words with subword
// units" (2016), on words cut as GPT-2 cuts them. For examples see tests/data/bpe_trainer_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "data/vocabulary.h"

namespace tokamak {

/// How often each word occurs in the text seen so far: all that training needs to know of it.
class WordCounts {
 public:
  /// Adds a text; words do not reach from one text into the next.
  void add(std::string_view text);

  /// Adds the counts of another part of the text.
  void merge(const WordCounts& other);

  /// Forgets the rarest words, all those of one count together, until at most `most` are left.
  void drop_rare(size_t most);

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };
  using Map = std::unordered_map<std::string, int64_t, Hash, std::equal_to<>>;
  const Map& counts() const { return counts_; }

 private:
  void add(std::string_view word, int64_t count);

  Map counts_;
};

/// The smallest vocabulary there is: the bytes and <|endoftext|>.
inline constexpr int64_t kMinVocabulary = 257;

/// A UserError if no vocabulary can be that small.
void check_vocab_size(int64_t vocab_size);

/// A vocabulary of `vocab_size` (a UserError if below kMinVocabulary): the 256 bytes in GPT-2's order, the merges in
/// the order they were found, <|endoftext|> as the last id. The most frequent pair is merged first; of equally frequent
/// ones that with the smaller left, then right id, so the same text always gives the same vocabulary. It comes out
/// smaller when no pair is left that occurs twice.
Vocabulary train_bpe(const WordCounts& words, int64_t vocab_size);

}  // namespace tokamak
