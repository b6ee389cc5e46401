// The iteration space of a group and how its operands lie in it: outer dims (one position of all of them is a "row")
// times one inner dim along which tiles run. Adjacent dims that every operand walks through in one stride are merged.
#pragma once

#include "graph/type.h"

#include <vector>

namespace tokamak::cpu {

/// How an operand is addressed: element = sum(outer index * stride) + (uniform ? 0 : inner index).
struct Access {
  std::vector<int64_t> outer_strides;
  bool uniform = false;  // one element for the whole row
};

struct Iteration {
  std::vector<int64_t> outer;  // sizes
  int64_t inner = 1;
  size_t row_dims = 0;  // how many of `outer` stand before the boundary
  std::vector<Access> accesses;

  int64_t num_outer() const;
};

/// `shapes` broadcast to `space`. Dims are not merged across `boundary`, which is the number of leading dims that form
/// the rows of a row or column group (0: none).
Iteration make_iteration(const Shape& space, size_t boundary, const std::vector<Shape>& shapes);

/// Offsets of all accesses at one outer position, kept up to date while moving on.
class Cursor {
 public:
  explicit Cursor(const Iteration& iteration);
  void seek(int64_t outer_position);
  void next();
  int64_t offset(size_t access) const { return offsets_[access]; }
  int64_t position() const { return position_; }

 private:
  const Iteration& it_;
  std::vector<int64_t> index_;
  std::vector<int64_t> offsets_;
  int64_t position_ = 0;
};

}  // namespace tokamak::cpu
