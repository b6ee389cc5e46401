#include "passes/placement.h"

#include "base/error.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "ops/pointwise.h"

#include <algorithm>
#include <limits>

namespace tokamak {
namespace {

using Kind = Placement::Kind;

Cut as_cut(const Placement& placement, const MeshAxis& axis) {
  return {axis.name, axis.size, placement.dim, placement.blocks, placement.mirrored};
}

// Whether an axis may be cut there beside the others.
bool fits(const Placements& at, size_t axis, const Placement& to, const Mesh& mesh) {
  Cut cut = as_cut(to, mesh.axes[axis]);
  for (size_t a = 0; a < at.size(); ++a) {
    if (a == axis || !at[a].is_cut() || at[a].dim != to.dim) continue;
    Cut other = as_cut(at[a], mesh.axes[a]);
    if (!lies_within(cut, other) && !lies_within(other, cut)) return false;
  }
  return true;
}

// The cut of the axis in terms of the share that the others leave: its blocks are those of the whole value, less what
// is cut around them.
CutDim within_share(const Placements& at, size_t axis, const Placement& cut, const Mesh& mesh) {
  CutDim local{cut.dim, cut.blocks};
  for (size_t a = 0; a < at.size(); ++a)
    if (a != axis && at[a].is_cut() && at[a].dim == cut.dim &&
        lies_within(as_cut(cut, mesh.axes[axis]), as_cut(at[a], mesh.axes[a])))
      local.blocks /= mesh.axes[a].size;
  return local;
}

// Moves a value by one step after the other, along whatever axis allows the cheapest kind of step.
class Mover {
 public:
  Mover(GraphBuilder& g, const Mesh& mesh, Placed value, const Placements& to,
        const std::function<ValueId(size_t axis)>& coordinate)
      : g_(g), mesh_(mesh), value_(std::move(value)), to_(to), coordinate_(coordinate) {}

  const Placed& value() const { return value_; }

  // False when there is nothing left to do. Steps that make the value smaller come first, and among them those along
  // the innermost axis, whose ranks are neighbours: so least is sent between nodes. What makes it larger begins with
  // the outermost one.
  bool step() {
    for (auto kind : {&Mover::take_part, &Mover::scatter, &Mover::become_term})
      for (size_t axis = to_.size(); axis-- > 0;)
        if (value_.at[axis] != to_[axis] && (this->*kind)(axis)) return true;
    for (auto kind : {&Mover::exchange, &Mover::reduce, &Mover::gather})
      for (size_t axis = 0; axis < to_.size(); ++axis)
        if (value_.at[axis] != to_[axis] && (this->*kind)(axis)) return true;
    TOKAMAK_CHECK(value_.at == to_, "[shard] a value cannot become a term of a maximum");
    return false;
  }

 private:
  bool fits_there(size_t axis) const { return to_[axis].is_cut() && fits(value_.at, axis, to_[axis], mesh_); }
  CutDim local(size_t axis, const Placement& cut) const { return within_share(value_.at, axis, cut, mesh_); }
  // A plain cut of what this gives is the mirrored cut of the value, and the other way round.
  ValueId mirror(ValueId value, size_t axis, const Placement& cut) {
    return cut.mirrored ? mirror_parts(g_, value, local(axis, cut), mesh_.axes[axis].size) : value;
  }
  bool become(size_t axis, const Placement& placement, ValueId value) {
    value_.at[axis] = placement;
    value_.value = value;
    return true;
  }

  // What is added in order are sums over the other axes.
  bool has_to_wait(size_t axis) const {
    if (!value_.at[axis].ordered) return false;
    return std::any_of(value_.at.begin(), value_.at.end(),
                       [](const Placement& p) { return p.is_term() && !p.ordered; });
  }

  bool take_part(size_t axis) {
    if (value_.at[axis].kind != Kind::kWhole || !fits_there(axis)) return false;
    ValueId whole = mirror(value_.value, axis, to_[axis]);
    return become(axis, to_[axis], part(g_, whole, coordinate_(axis), mesh_.axes[axis].size, local(axis, to_[axis])));
  }
  bool scatter(size_t axis) {
    if (value_.at[axis].kind != Kind::kSum || !fits_there(axis) || has_to_wait(axis)) return false;
    auto* op = value_.at[axis].ordered ? ordered_reduce_scatter : reduce_scatter;
    ValueId whole = mirror(value_.value, axis, to_[axis]);
    return become(axis, to_[axis], op(g_, whole, mesh_.axes[axis], local(axis, to_[axis])));
  }
  // The first rank's is the value, the others' are zeros.
  bool become_term(size_t axis) {
    if (value_.at[axis].kind != Kind::kWhole || to_[axis].kind != Kind::kSum) return false;
    ValueId is_first = less(g_, cast(g_, coordinate_(axis), DType::kF32), constant(g_, 1));
    ValueId zero = constant(g_, 0, {}, g_.graph().dtype(value_.value));
    return become(axis, to_[axis], select(g_, is_first, value_.value, zero));
  }
  bool exchange(size_t axis) {
    const Placement from = value_.at[axis];
    if (!from.is_cut() || !fits_there(axis) || to_[axis].dim == from.dim) return false;
    ValueId sent = mirror(value_.value, axis, to_[axis]);
    ValueId received = all_to_all(g_, sent, mesh_.axes[axis], local(axis, from), local(axis, to_[axis]));
    return become(axis, to_[axis], mirror(received, axis, from));
  }
  bool reduce(size_t axis) {
    if (!value_.at[axis].is_term() || has_to_wait(axis)) return false;
    if (value_.at[axis].ordered) return become(axis, {}, ordered_all_reduce(g_, value_.value, mesh_.axes[axis]));
    Reduction reduction = value_.at[axis].kind == Kind::kMax ? Reduction::kMax : Reduction::kSum;
    return become(axis, {}, all_reduce(g_, value_.value, mesh_.axes[axis], reduction));
  }
  bool gather(size_t axis) {
    if (!value_.at[axis].is_cut()) return false;
    const Placement from = value_.at[axis];
    return become(axis, {}, mirror(all_gather(g_, value_.value, mesh_.axes[axis], local(axis, from)), axis, from));
  }

  GraphBuilder& g_;
  const Mesh& mesh_;
  Placed value_;
  const Placements& to_;
  const std::function<ValueId(size_t axis)>& coordinate_;
};

}  // namespace

Placements placements_of(const std::vector<Cut>& cuts, const Mesh& mesh) {
  Placements placements(mesh.axes.size());
  for (const Cut& cut : cuts)
    placements[mesh.find(cut.axis)] =
        cut.term ? Placement{.kind = Kind::kSum} : Placement::cut(cut.dim, cut.blocks, cut.mirrored);
  return placements;
}

std::vector<Cut> cuts_of(const Placements& placements, const Mesh& mesh) {
  std::vector<Cut> cuts;
  for (size_t a = 0; a < placements.size(); ++a)
    if (placements[a].is_cut()) cuts.push_back(as_cut(placements[a], mesh.axes[a]));
  return cuts;
}

Shape share_of(const Shape& whole, const Placements& placements, const Mesh& mesh) {
  return part_shape(whole, cuts_of(placements, mesh));
}

double move_cost(const Placement& from, const Placement& to, double bytes, int64_t size) {
  if (from == to) return 0;
  if (to.is_term()) return std::numeric_limits<double>::infinity();
  switch (from.kind) {
    case Kind::kWhole: return 0;
    case Kind::kCut: return to.is_cut() ? bytes / double(size) : bytes;
    case Kind::kSum: return to.is_cut() ? bytes : 2 * bytes;
    case Kind::kMax: return 2 * bytes;
  }
  return 0;
}

ValueId move(GraphBuilder& g, const Mesh& mesh, Placed from, const Placements& to,
             const std::function<ValueId(size_t axis)>& coordinate, const std::function<void(const Placed&)>& made) {
  Mover mover(g, mesh, std::move(from), to, coordinate);
  while (mover.step()) made(mover.value());
  return mover.value().value;
}

}  // namespace tokamak
