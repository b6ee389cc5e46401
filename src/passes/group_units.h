// A graph while its groups are being merged: what runs as one (a unit), in which order, and who reads what.
#pragma once

#include "passes/group_of_node.h"

#include <unordered_map>

namespace tokamak {

class Rewriter;

/// A node of the graph, or what became of a group that absorbed others.
struct Unit {
  const Node* node = nullptr;
  std::optional<GroupBody> group;  // of flat, row and column groups
  double position = 0;             // units run in this order
  bool live = true;
};

class GroupUnits {
 public:
  /// Units that nobody reads are not live, but for those with effects.
  explicit GroupUnits(const Graph& graph);

  int size() const { return int(units_.size()); }
  const Unit& operator[](int u) const { return units_[size_t(u)]; }
  bool is_live_group(int u) const { return units_[size_t(u)].live && units_[size_t(u)].group; }
  double position(int u) const { return units_[size_t(u)].position; }

  ValueIds inputs(int u) const;
  ValueIds outputs(int u) const;
  /// Live units that read the value.
  const std::vector<int>& users(ValueId value) const { return users_[size_t(value)]; }
  /// The unit that makes the value; -1 for arguments.
  int producer(ValueId value) const { return producer_[size_t(value)]; }
  bool escapes(ValueId value) const { return escaping_[size_t(value)]; }
  /// Whether it came from another stage of a pipeline.
  bool is_residual(ValueId value) const;
  bool is_read(ValueId value) const { return escapes(value) || !users(value).empty(); }
  bool has_readers(int u) const;
  double bytes(ValueId value) const { return double(num_bytes(graph_.type(value))); }
  /// Position of the last unit that reads the value; infinity when it escapes, 0 without readers.
  double last_use(ValueId value) const;

  /// The unit computes `group` from now on; `producer`, which it no longer reads, goes when nobody else reads it.
  void become(int u, GroupBody group, int producer);
  /// The unit's group is one of `kind` from now on.
  void become(int u, const OpDef& kind) { units_[size_t(u)].group->kind = &kind; }
  /// `kept` computes `group`, in which `gone` is part, and runs at `position`.
  void merge(int gone, int kept, GroupBody group, double position);

  /// The graph of the live units in their order.
  Graph rewrite();

 private:
  void read_node(const Node& node);
  ValueId behind_views(ValueId value) const;
  void link(int u);
  void unlink(int u);

  const Graph& graph_;
  std::vector<bool> escaping_;
  std::vector<Unit> units_;
  std::vector<std::vector<int>> users_;  // by value
  std::vector<int> producer_;            // by value
  // By body: groups of like nodes share theirs.
  std::unordered_map<const Graph*, GroupBody> bodies_;
};

/// How many places a unit may move before what that keeps in memory has to be weighed.
inline constexpr double kNear = 16;

/// What keeps a group's kernel small: nodes of the body, inputs and outputs.
bool within_limits(const GroupBody& group);

/// Appends the group to the graph that the rewriter makes, in place of the node; its results stand for group.results.
void append_group(Rewriter& rewriter, const Graph& from, const Node& node, const GroupBody& group);

}  // namespace tokamak
