// Words that are one token, looked up by their bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/word_block.h"

namespace tokamak {

class WordTable {
 public:
  WordTable() : WordTable(0) {}

  /// `most`: no more words than that will come.
  explicit WordTable(size_t most) : short_(std::bit_ceil(std::max<size_t>(16, 2 * most))) {}

  /// Adds a word of at least one byte; of equal ones the first stays.
  void add(std::string_view word, int32_t id) {
    if (word.size() > kMaxKeyBytes) {
      long_.emplace(word, id);
      return;
    }
    WordBlock key = word_key(load_block(word), word.size());
    size_t at = place(key);
    if (short_[at].key != key) short_[at] = {key, id};
  }

  /// The id of a word, -1 if it is not here. `key` is its word_key(), of length 0 for a word that is too long for one.
  int32_t find(std::string_view word, WordBlock key) const {
    if (key_length(key) > 0) return short_[place(key)].id;
    auto found = long_.find(word);
    return found == long_.end() ? -1 : found->second;
  }

 private:
  struct Slot {
    WordBlock key = {0, 0};
    int32_t id = -1;
  };

  /// Where a key is, or the empty slot where it belongs. Open addressing, a power of two of slots.
  size_t place(WordBlock key) const {
    size_t mask = short_.size() - 1, at = size_t(hash_key(key) >> 32) & mask;
    while (short_[at].id >= 0 && short_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };

  std::vector<Slot> short_;
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> long_;
};

}  // namespace tokamak
