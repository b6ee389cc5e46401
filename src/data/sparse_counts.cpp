#include "data/sparse_counts.h"

#include <algorithm>

namespace tokamak {

void SparseCounts::merge() {
  std::sort(fresh_.begin(), fresh_.end());
  std::vector<Count> merged;
  auto take = [&](int64_t item, int64_t uses) {
    if (merged.empty() || merged.back().item != item) merged.push_back({item, 0});
    merged.back().uses += uses;
  };
  auto fresh = fresh_.begin();
  for (const Count& count : counts_) {
    for (; fresh != fresh_.end() && *fresh < count.item; ++fresh) take(*fresh, 1);
    take(count.item, count.uses);
  }
  for (; fresh != fresh_.end(); ++fresh) take(*fresh, 1);
  counts_ = std::move(merged);
  fresh_.clear();
}

}  // namespace tokamak
