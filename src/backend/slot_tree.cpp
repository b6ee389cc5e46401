#include "backend/slot_tree.h"

#include "base/error.h"

#include <algorithm>
#include <bit>

namespace tokamak {

std::vector<Subtree> SlotTree::parts(int rank) const {
  TOKAMAK_CHECK(std::has_single_bit(unsigned(slots)) && 0 < ranks && ranks <= slots && 0 <= rank && rank < ranks,
                "rank {} of {} with {} slots", rank, ranks, slots);
  std::vector<Subtree> parts;
  for (int at = begin(rank), last = end(rank); at < last;) {
    int level = std::bit_width(unsigned(last - at)) - 1;
    if (at > 0) level = std::min(level, std::countr_zero(unsigned(at)));
    parts.push_back({at, level});
    at += 1 << level;
  }
  return parts;
}

int SlotTree::max_parts() const {
  size_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) most = std::max(most, parts(rank).size());
  return int(most);
}

}  // namespace tokamak
