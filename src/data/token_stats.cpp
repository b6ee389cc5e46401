#include "data/token_stats.h"

#include <algorithm>
#include <bit>

namespace tokamak {

void LengthHistogram::add(int64_t length) {
  if (length < 1) return;
  ++counts[size_t(std::bit_width(uint64_t(length))) - 1];
  ++documents;
  longest = std::max(longest, length);
}

void LengthHistogram::append(const LengthHistogram& other) {
  for (size_t bin = 0; bin < counts.size(); ++bin) counts[bin] += other.counts[bin];
  documents += other.documents;
  longest = std::max(longest, other.longest);
}

void TokenStats::add(std::span<const int32_t> tokens) {
  if (tokens.empty()) return;
  auto [least, most] = std::minmax_element(tokens.begin(), tokens.end());
  least_ = std::min(least_, *least);
  most_ = std::max(most_, *most);
  tokens_ += int64_t(tokens.size());
  if (!separator_) return;
  for (auto at = tokens.begin();;) {
    auto found = std::find(at, tokens.end(), *separator_);
    (separators_ == 0 ? head_ : tail_) += found - at;
    if (found == tokens.end()) return;
    if (separators_++ > 0) inner_.add(tail_);
    tail_ = 0;
    at = found + 1;
  }
}

void TokenStats::append(const TokenStats& next) {
  if (next.tokens_ == 0) return;
  least_ = std::min(least_, next.least_);
  most_ = std::max(most_, next.most_);
  tokens_ += next.tokens_;
  unlearned_ += next.unlearned_;
  (separators_ == 0 ? head_ : tail_) += next.head_;
  if (next.separators_ > 0) {
    if (separators_ > 0) inner_.add(tail_);
    tail_ = next.tail_;
  }
  separators_ += next.separators_;
  inner_.append(next.inner_);
}

LengthHistogram TokenStats::lengths() const {
  LengthHistogram all = inner_;
  all.add(head_);
  all.add(tail_);
  return all;
}

}  // namespace tokamak
