// Which way of sharing a node's work costs the fewest bytes sent, along one axis of the mesh after the other.
// Tests: tests/passes/shard_test.cpp.
#pragma once

#include "passes/wanted_cuts.h"
#include "passes/ways_to_cut.h"

namespace tokamak {

class Shares;

class WayChooser {
 public:
  /// Refers to all of them. With `ordered` the update adds over no axis that ZeRO cuts.
  WayChooser(const WholeGraph& whole, const Shares& shares, const WantedPlacements& wanted, const Mesh& mesh,
             bool ordered)
      : whole_(whole), shares_(shares), wanted_(wanted), mesh_(mesh), ordered_(ordered) {}

  /// One for each axis.
  std::vector<Way> choose(const Node& node, const ShardingRule& rule) const;

  /// How many ranks have parts of a large input that would have to be gathered, because the op needs all of a dim that
  /// is cut; 1: none would.
  int64_t ranks_to_gather(const Node& node, const ShardingRule& rule, const std::vector<Way>& ways) const;

  /// Bytes that have to be sent for the value to lie so along the axis, at least.
  double cost_to_have(ValueId value, size_t axis, const Placement& to) const;

  /// Whole on every rank where nothing else is wanted.
  const Placements& wanted(ValueId value) const;

 private:
  bool would_gather(const Node& node, const ShardingRule& rule, const std::vector<Way>& ways, size_t axis) const;
  Way choose_along(const Node& node, const ShardingRule& rule, size_t axis, const std::vector<Way>& before) const;
  double cost_of(const Node& node, const ShardingRule& rule, const Way& way, const std::vector<Way>& before) const;
  Placement wanted_along(const Node& node, ValueId output, size_t axis) const;
  bool may_add_over(const Node& node, size_t axis) const;
  bool is_to_be_gathered(const Node& node, ValueId input, size_t axis) const;

  const WholeGraph& whole_;
  const Shares& shares_;
  const WantedPlacements& wanted_;
  const Mesh& mesh_;
  bool ordered_;
  Placements whole_placement_ = Placements(mesh_.axes.size());
};

}  // namespace tokamak
