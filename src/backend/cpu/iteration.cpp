#include "backend/cpu/iteration.h"

#include <algorithm>

namespace tokamak::cpu {
namespace {

using Strides = std::vector<std::vector<int64_t>>;  // by access, by dim

// Whether dims d and d + 1 can be walked as one by every access.
bool mergeable(const std::vector<int64_t>& sizes, const Strides& strides, size_t d) {
  if (sizes[d] == 1 || sizes[d + 1] == 1) return true;
  return std::all_of(strides.begin(), strides.end(), [&](const auto& s) { return s[d] == s[d + 1] * sizes[d + 1]; });
}

void merge(std::vector<int64_t>& sizes, Strides& strides, size_t d) {
  for (auto& s : strides) s.erase(s.begin() + int64_t(sizes[d + 1] == 1 ? d + 1 : d));
  sizes[d] *= sizes[d + 1];
  sizes.erase(sizes.begin() + int64_t(d) + 1);
}

}  // namespace

int64_t Iteration::num_outer() const { return num_elements(outer); }

Iteration make_iteration(const Shape& space, size_t boundary, const std::vector<Shape>& shapes) {
  std::vector<int64_t> sizes = space;
  Strides strides;
  for (const Shape& shape : shapes) strides.push_back(broadcast_strides(shape, space));
  if (sizes.empty()) {
    sizes.push_back(1);
    for (auto& s : strides) s.push_back(0);
  }
  for (size_t d = sizes.size() - 1; d-- > 0;) {
    if (d + 1 == boundary || !mergeable(sizes, strides, d)) continue;
    merge(sizes, strides, d);
    if (d < boundary) --boundary;
  }
  Iteration it;
  it.inner = sizes.back();
  it.outer.assign(sizes.begin(), sizes.end() - 1);
  it.row_dims = std::min(boundary, it.outer.size());
  for (auto& s : strides) {
    bool uniform = s.back() == 0;
    s.pop_back();
    it.accesses.push_back({std::move(s), uniform});
  }
  return it;
}

Cursor::Cursor(const Iteration& iteration)
    : it_(iteration), index_(iteration.outer.size(), 0), offsets_(iteration.accesses.size(), 0) {}

void Cursor::seek(int64_t outer_position) {
  position_ = outer_position;
  for (size_t d = index_.size(); d-- > 0; outer_position /= it_.outer[d]) index_[d] = outer_position % it_.outer[d];
  for (size_t a = 0; a < offsets_.size(); ++a) {
    offsets_[a] = 0;
    for (size_t d = 0; d < index_.size(); ++d) offsets_[a] += index_[d] * it_.accesses[a].outer_strides[d];
  }
}

void Cursor::next() {
  ++position_;
  for (size_t d = index_.size(); d-- > 0;) {
    for (size_t a = 0; a < offsets_.size(); ++a) offsets_[a] += it_.accesses[a].outer_strides[d];
    if (++index_[d] < it_.outer[d]) return;
    for (size_t a = 0; a < offsets_.size(); ++a) offsets_[a] -= it_.accesses[a].outer_strides[d] * it_.outer[d];
    index_[d] = 0;
  }
}

}  // namespace tokamak::cpu
