// How often each short word occurs: a hash table of their keys.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "data/word_block.h"

namespace tokamak {

class KeyCounts {
 public:
  /// `expected` is a guess of how many different words will come; it grows.
  explicit KeyCounts(size_t expected) : slots_(std::bit_ceil(std::clamp<size_t>(2 * expected, 16, size_t(1) << 16))) {}

  /// Counts a word by its word_key(), which is not of length 0.
  void add(WordBlock key) {
    Slot& slot = find(key);
    if (slot.count++ > 0) return;
    slot.key = key;
    if (2 * ++size_ > slots_.size()) grow();
  }

  /// Calls body(key, count) for each word.
  template <typename Body>
  void for_each(Body&& body) const {
    for (const Slot& slot : slots_)
      if (slot.count > 0) body(slot.key, slot.count);
  }

 private:
  struct Slot {
    WordBlock key = {0, 0};
    int64_t count = 0;
  };

  /// The slot of a key, or the empty one where it belongs. Open addressing, a power of two of slots.
  Slot& find(WordBlock key) {
    size_t mask = slots_.size() - 1, at = size_t(hash_key(key) >> 32) & mask;
    while (slots_[at].count > 0 && slots_[at].key != key) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.count > 0) find(slot.key) = slot;
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace tokamak
