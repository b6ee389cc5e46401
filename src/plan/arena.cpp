#include "plan/arena.h"

#include "base/divide.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tokamak {
namespace {

int64_t aligned(int64_t bytes) { return round_up(bytes, kArenaAlignment); }

// What has its place, as the loop over many of them reads it.
struct Placed {
  int first, last, held;
  int64_t offset, end;
};

int held_to(const Block& block) { return std::max(block.last, block.held); }

// Two copies of one stream follow each other.
bool is_beside(const Placed& other, const Block& block, int held) {
  if (block.first > other.held || other.first > held) return false;
  bool both_queued = other.held > other.last && held > block.last;
  return !both_queued || (block.first <= other.last && other.first <= block.last);
}

bool by_offset(int64_t offset, const Placed& other) { return offset < other.offset; }

// What has its place, sorted by offset: all of it, and by parts of the time what is alive in each. Most blocks live for
// a few launches of thousands and need look only at their part.
class PlacedBlocks {
 public:
  explicit PlacedBlocks(int end) : per_part_(end / kParts + 1), parts_(kParts) {}

  void add(const Placed& one) {
    insert(all_, one);
    for (int part = one.first / per_part_; part <= one.held / per_part_; ++part) insert(parts_[size_t(part)], one);
  }
  /// All that may be alive at the same time as the block.
  const std::vector<Placed>& beside(const Block& block) const {
    int part = block.first / per_part_;
    return part == held_to(block) / per_part_ ? parts_[size_t(part)] : all_;
  }

 private:
  static constexpr int kParts = 32;

  static void insert(std::vector<Placed>& into, const Placed& one) {
    into.insert(std::upper_bound(into.begin(), into.end(), one.offset, by_offset), one);
  }

  int per_part_;
  std::vector<Placed> all_;
  std::vector<std::vector<Placed>> parts_;
};

// The tightest gap between the blocks alive at the same time, else behind them. `placed` is sorted by offset.
int64_t find_offset(const std::vector<Placed>& placed, const Block& block) {
  int64_t size = aligned(block.bytes), end = 0, best = -1, best_gap = std::numeric_limits<int64_t>::max();
  int held = held_to(block);
  for (const Placed& other : placed) {
    if (!is_beside(other, block, held)) continue;
    int64_t gap = other.offset - end;
    if (gap >= size && gap < best_gap) {
      best = end;
      best_gap = gap;
      if (gap == size) break;  // none is tighter
    }
    end = std::max(end, other.end);
  }
  return best >= 0 ? best : end;
}

// Ends where it takes as much as another order did.
int64_t place_in_order(std::vector<Block>& blocks, const std::vector<int>& order, int last, int64_t most) {
  PlacedBlocks placed(last + 1);
  int64_t arena = 0;
  for (int i : order) {
    Block& block = blocks[size_t(i)];
    block.offset = find_offset(placed.beside(block), block);
    int64_t end = block.offset + aligned(block.bytes);
    arena = std::max(arena, end);
    if (arena >= most) break;
    placed.add({block.first, block.last, held_to(block), block.offset, end});
  }
  return arena;
}

using Before = bool (*)(const Block&, const Block&);

// Large first leaves small ones the gaps; long-lived first keeps them from splitting the arena; the order of definition
// suits chains of equal sizes.
constexpr Before kOrders[] = {
    [](const Block& a, const Block& b) { return a.bytes > b.bytes; },
    [](const Block& a, const Block& b) {
      return double(a.bytes) * (a.last - a.first + 1) > double(b.bytes) * (b.last - b.first + 1);
    },
    [](const Block& a, const Block& b) { return a.last - a.first > b.last - b.first; },
    [](const Block& a, const Block& b) { return a.first < b.first; },
};

}  // namespace

std::vector<int64_t> live_bytes(const std::vector<Block>& blocks, int num_nodes) {
  std::vector<int64_t> live(size_t(num_nodes) + 2, 0);
  for (const Block& block : blocks) {
    live[size_t(block.first)] += aligned(block.bytes);
    live[size_t(block.last) + 1] -= aligned(block.bytes);
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.pop_back();
  return live;
}

int64_t place_blocks(std::vector<Block>& blocks) {
  if (blocks.empty()) return 0;
  int end = 0;
  for (const Block& block : blocks) end = std::max(end, held_to(block));
  std::vector<int64_t> live = live_bytes(blocks, end);
  int64_t bound = *std::max_element(live.begin(), live.end());

  std::vector<int> order(blocks.size());
  std::vector<Block> best;
  int64_t best_bytes = std::numeric_limits<int64_t>::max();
  for (Before before : kOrders) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return before(blocks[size_t(a)], blocks[size_t(b)]); });
    int64_t bytes = place_in_order(blocks, order, end, best_bytes);
    if (bytes < best_bytes) {
      best_bytes = bytes;
      best = blocks;
    }
    if (best_bytes == bound) break;
  }
  blocks = std::move(best);
  return best_bytes;
}

}  // namespace tokamak
