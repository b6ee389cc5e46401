// The values of a graph while shard makes one rank's graph of it: the shares there are of each, and where they lie.
#pragma once

#include "passes/placement.h"

#include <deque>

namespace tokamak {

class Shares {
 public:
  /// Moves are appended to `to`.
  Shares(const Mesh& mesh, GraphBuilder& to) : mesh_(mesh), g_(to) {}

  /// Of a value, all that were made so far, the first one first.
  const std::vector<Placed>& of(ValueId value) const;
  bool has(ValueId value) const { return size_t(value) < shares_.size() && !shares_[size_t(value)].empty(); }
  void add(ValueId value, Placed share) { at(value).push_back(std::move(share)); }
  /// Forgets what there was.
  void set(ValueId value, std::vector<Placed> shares) { at(value) = std::move(shares); }

  /// The one that lies so; kNoValue when there is none.
  ValueId find(ValueId value, const Placements& at) const;
  /// The same, made from another where there is none. The value is of `bytes`.
  ValueId get(ValueId value, const Placements& at, int64_t bytes);

  /// The input that says where the rank stands on the axis.
  ValueId coordinate(size_t axis);

 private:
  std::vector<Placed>& at(ValueId value) {
    if (size_t(value) >= shares_.size()) shares_.resize(size_t(value) + 1);
    return shares_[size_t(value)];
  }

  const Mesh& mesh_;
  GraphBuilder& g_;
  std::deque<std::vector<Placed>> shares_;  // by value; none: not made yet. What is appended moves no others.
};

}  // namespace tokamak
