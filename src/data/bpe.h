// The merging at the heart of byte-level BPE: the neighbouring pair of lowest rank, leftmost first, until none is left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/vocabulary.h"

namespace tokamak {

/// The ranked merges of a vocabulary, looked up by pair.
class BpeMerges {
 public:
  BpeMerges() = default;

  /// `tied`: neighbours in the list with one result have one rank.
  explicit BpeMerges(std::span<const Merge> merges, bool tied = false);

  /// Merges one word in place: `symbols` comes in as the ids of its bytes. Time n log n in its length.
  void apply(std::vector<int32_t>& symbols) const;

 private:
  struct Slot {
    uint64_t pair;
    int32_t rank;
    int32_t result;
  };

  /// The merge of two ids; its rank is kNoRank if there is none.
  Slot find(int32_t left, int32_t right) const;
  void apply_short(std::vector<int32_t>& symbols) const;
  void apply_long(std::vector<int32_t>& symbols) const;

  std::vector<Slot> slots_;  // open addressing, a power of two long
  int shift_ = 0;
};

}  // namespace tokamak
