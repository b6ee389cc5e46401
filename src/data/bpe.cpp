#include "data/bpe.h"

#include "data/pair_key.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <queue>

namespace tokamak {

namespace {

constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();
constexpr uint64_t kEmpty = std::numeric_limits<uint64_t>::max();

// Up to this length, looking at every pair for each merge is faster than a heap.
constexpr size_t kShortWord = 64;

}  // namespace

BpeMerges::BpeMerges(std::span<const Merge> merges, bool tied) {
  size_t capacity = std::bit_ceil(std::max<size_t>(16, 2 * merges.size()));
  shift_ = 64 - std::countr_zero(capacity);
  slots_.assign(capacity, {kEmpty, kNoRank, -1});
  for (size_t i = 0, rank = 0; i < merges.size(); ++i) {
    if (!tied || i == 0 || merges[i].result != merges[i - 1].result) rank = i;
    uint64_t pair = pair_key(merges[i].left, merges[i].right);
    size_t at = pair * 0x9E3779B97F4A7C15u >> shift_;
    while (slots_[at].pair != kEmpty && slots_[at].pair != pair) at = (at + 1) & (capacity - 1);
    if (slots_[at].pair == kEmpty) slots_[at] = {pair, int32_t(rank), merges[i].result};
  }
}

inline BpeMerges::Slot BpeMerges::find(int32_t left, int32_t right) const {
  uint64_t pair = pair_key(left, right);
  size_t at = pair * 0x9E3779B97F4A7C15u >> shift_;
  while (slots_[at].pair != pair) {
    if (slots_[at].pair == kEmpty) return {kEmpty, kNoRank, -1};
    at = (at + 1) & (slots_.size() - 1);
  }
  return slots_[at];
}

void BpeMerges::apply(std::vector<int32_t>& symbols) const {
  if (slots_.empty() || symbols.size() < 2) return;
  symbols.size() <= kShortWord ? apply_short(symbols) : apply_long(symbols);
}

void BpeMerges::apply_short(std::vector<int32_t>& symbols) const {
  std::array<int32_t, kShortWord> ranks, results;  // of the pair that starts at each symbol
  size_t count = symbols.size();
  auto look_up = [&](size_t i) {
    Slot slot = find(symbols[i], symbols[i + 1]);
    ranks[i] = slot.rank;
    results[i] = slot.result;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    size_t best = size_t(std::min_element(ranks.begin(), ranks.begin() + (count - 1)) - ranks.begin());
    if (ranks[best] == kNoRank) break;
    symbols[best] = results[best];
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      ranks[i] = ranks[i + 1];
      results[i] = results[i + 1];
    }
    if (best > 0) look_up(best - 1);
    if (best + 1 < count) look_up(best);
  }
  symbols.resize(count);
}

void BpeMerges::apply_long(std::vector<int32_t>& symbols) const {
  // Symbols form a linked list; a dead symbol is -1. Heap entries of pairs that have changed since are skipped.
  struct Candidate {
    int32_t rank;
    size_t at;
    int32_t left, right, result;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  size_t count = symbols.size();
  std::vector<size_t> next(count), previous(count);
  for (size_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;  // wraps for 0, which is never followed
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  auto offer = [&](size_t at) {
    Slot slot = find(symbols[at], symbols[next[at]]);
    if (slot.rank != kNoRank) heap.push({slot.rank, at, symbols[at], symbols[next[at]], slot.result});
  };
  for (size_t i = 0; i + 1 < count; ++i) offer(i);
  while (!heap.empty()) {
    Candidate best = heap.top();
    heap.pop();
    size_t at = best.at, right = next[at];
    if (symbols[at] != best.left || right >= count || symbols[right] != best.right) continue;
    symbols[at] = best.result;
    symbols[right] = -1;
    next[at] = next[right];
    if (next[at] < count) previous[next[at]] = at;
    if (at > 0) offer(previous[at]);
    if (next[at] < count) offer(at);
  }
  std::erase(symbols, -1);
}

}  // namespace tokamak
