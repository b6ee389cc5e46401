// The one order in which slots of a batch are added, wherever they were computed: a binary tree over the slots, whose
// number is a power of two. A rank has consecutive slots and adds those of a subtree as soon as it is full; what is
// left of its slots are subtrees, at most one on the way up and one on the way down of each size. Communicator::
// ordered_all_reduce adds those of all ranks. Tests: tests/backend/ranks/slot_tree_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tokamak {

/// The sum of slots [first, first + 2^level).
struct Subtree {
  int first = 0;
  int level = 0;
  bool operator==(const Subtree&) const = default;
};

/// A subtree's values, where they lie.
struct TreePiece {
  const void* data;
  int level;
};

struct SlotTree {
  int slots = 1;  // a power of two, at least the number of ranks
  int ranks = 1;

  /// The slots of a rank are [begin, end).
  int begin(int rank) const { return int(int64_t(slots) * rank / ranks); }
  int end(int rank) const { return begin(rank + 1); }
  /// The largest subtrees that a rank's slots fill, in the order of slots.
  std::vector<Subtree> parts(int rank) const;
  /// The largest number of them that a rank has.
  int max_parts() const;
};

/// Adds pieces that follow each other, whose slots are all those of a tree, in its order: `push(i)` puts piece i on a
/// stack, `add()` replaces the upper two by their sum, the lower one first.
template <class Push, class Add>
void fold_tree(std::span<const TreePiece> pieces, const Push& push, const Add& add) {
  std::vector<int> levels;
  for (size_t i = 0; i < pieces.size(); ++i) {
    push(i);
    levels.push_back(pieces[i].level);
    while (levels.size() > 1 && levels[levels.size() - 2] == levels.back()) {
      add();
      levels.pop_back();
      ++levels.back();
    }
  }
}

}  // namespace tokamak
