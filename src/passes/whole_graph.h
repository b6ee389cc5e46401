// The graph of which shard makes one rank's: who reads its values, how its nodes can be cut, and which values each rank
// makes by itself. What is decomposed on the way comes behind its nodes.
#pragma once

#include "graph/builder.h"
#include "graph/sharding_rule.h"

#include <map>

namespace tokamak {

class WholeGraph {
 public:
  explicit WholeGraph(const Graph& graph);
  WholeGraph(const WholeGraph&) = delete;
  WholeGraph& operator=(const WholeGraph&) = delete;

  const Graph& graph() const { return graph_; }
  /// Appends to the graph.
  GraphBuilder& append() { return append_; }
  ShardingRule rule_of(const Node& node) const;
  /// Those of the nodes as they came, by node.
  const std::vector<ShardingRule>& rules() const { return rules_; }

  /// Of the graph as it came; a value that was appended is not in it.
  bool came(ValueId value) const { return size_t(value) < users_.size(); }
  std::span<const int> users(ValueId value) const { return users_[size_t(value)]; }
  bool is_needed(ValueId value) const { return !users(value).empty() || escaping_[size_t(value)]; }
  bool is_parameter(ValueId value) const;  // or its first rows
  bool is_updated(ValueId value) const { return came(value) && updated_[size_t(value)]; }
  /// Whether an update adds the value, a gradient, to others later.
  bool is_kept_for_sum(ValueId value) const { return came(value) && kept_for_sum_[size_t(value)]; }
  /// What the value becomes where all that is done with it is to add rows (passes/pad_shards.h); else itself.
  ValueId with_rows_added(ValueId value) const;
  /// Whether all that reads the value is linear in it and others: of several sums over ranks that may make one.
  bool may_be_added_on(ValueId value) const { return came(value) && may_be_added_on_[size_t(value)]; }

  /// Values of no inputs are not sent: each rank makes what it needs.
  bool is_made_where_read(ValueId value) const;
  /// Its node.
  const Node& made_by(ValueId value) const { return graph_.nodes()[size_t(graph_.producer(origin(value)))]; }
  /// From now on the value is made as this other one, which is made where it is read.
  void make_as(ValueId value, ValueId other) { made_as_[value] = origin(other); }

 private:
  ValueId origin(ValueId value) const;

  Graph graph_;
  GraphBuilder append_;
  Users users_;
  std::vector<ShardingRule> rules_;
  std::vector<bool> escaping_;
  std::vector<bool> updated_;          // by value
  std::vector<bool> kept_for_sum_;     // by value
  std::vector<bool> may_be_added_on_;  // by value
  std::map<ValueId, ValueId> made_as_;
};

}  // namespace tokamak
