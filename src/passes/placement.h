// Where a value lies on a mesh while the shard pass works: for each axis whole, cut, or in terms still to be put
// together; and how it gets from one placement to another.
#pragma once

#include "base/short_list.h"
#include "graph/builder.h"
#include "graph/mesh.h"

#include <functional>
#include <vector>

namespace tokamak {

/// Along one axis: the same on all ranks, cut as Cut (graph/argument_spec.h) says, or on each rank a term of a sum or
/// of a maximum.
struct Placement {
  enum class Kind : uint8_t { kWhole, kCut, kSum, kMax };
  Kind kind = Kind::kWhole;
  int64_t dim = 0, blocks = 1;  // of kCut
  bool mirrored = false;        // the same
  bool ordered = false;         // of kSum: see ops/collective.h; it is taken when all other sums have been

  static Placement cut(int64_t dim, int64_t blocks, bool mirrored = false) {
    return {Kind::kCut, dim, blocks, mirrored};
  }
  bool is_cut() const { return kind == Kind::kCut; }
  bool is_term() const { return kind == Kind::kSum || kind == Kind::kMax; }
  bool operator==(const Placement&) const = default;
};

using Placements = ShortList<Placement, 4>;  // by axis of the mesh

/// Those that the cuts say, and the cuts that those say (not which are terms).
Placements placements_of(const std::vector<Cut>& cuts, const Mesh& mesh);
std::vector<Cut> cuts_of(const Placements& placements, const Mesh& mesh);

/// Shape of a rank's share of a value of this shape.
Shape share_of(const Shape& whole, const Placements& placements, const Mesh& mesh);

/// Bytes that a rank sends, about, to move `bytes` along an axis of `size` ranks; infinite where there is no way, or
/// none that should be chosen: a term may be made of what is none, but where that is not asked for, it delays sums.
double move_cost(const Placement& from, const Placement& to, double bytes, int64_t size);

/// A value's share, and where it lies.
struct Placed {
  ValueId value = kNoValue;
  Placements at;
};

/// Appends what moves the value to `to`, one node after the other, each of which is shown to `made`. Terms of a maximum
/// cannot be made of what is none. `coordinate` gives the rank's own along an axis.
ValueId move(GraphBuilder& g, const Mesh& mesh, Placed from, const Placements& to,
             const std::function<ValueId(size_t axis)>& coordinate, const std::function<void(const Placed&)>& made);

}  // namespace tokamak
