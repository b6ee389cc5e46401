// Makes a new graph out of an old one, node by node: what a pass does not replace is copied.
#pragma once

#include "graph/builder.h"

#include <functional>
#include <map>

namespace tokamak {

/// What an argument may have otherwise in a new graph.
struct ArgumentForm {
  ValueType type;
  ArgumentSpec spec;
};
/// As it is, but of this type.
ArgumentForm with_type(const Argument& argument, ValueType type);

/// Usage: construct (arguments are taken over), for each node of the old graph either copy() it or append something
/// else with in_place_of() and replace() its outputs, then finish().
class Rewriter {
 public:
  /// `changed`: some of the arguments as the new graph has them.
  explicit Rewriter(const Graph& from, const std::map<ValueId, ArgumentForm>& changed = {});

  /// Appends nodes that stand for this one (of the old graph, or made from one): they get its phase and decisions.
  GraphBuilder& in_place_of(const Node& node);
  /// Appends nodes that stand for none of the old graph.
  GraphBuilder& in_phase(Phase phase);
  /// The new graph so far.
  const Graph& graph() const { return to_; }
  /// The new value that stands for an old one.
  ValueId map(ValueId old_value) const;
  ValueIds map(const ValueIds& old_values) const;
  /// Appends the same node with mapped inputs.
  void copy(const Node& node);
  /// From now on `new_value` stands for `old_value`.
  void replace(ValueId old_value, ValueId new_value);
  void replace(const ValueIds& old_values, const ValueIds& new_values);
  /// Takes over results and updates and gives the new graph away.
  Graph finish();

 private:
  const Graph& from_;
  Graph to_;
  GraphBuilder builder_;
  std::vector<ValueId> map_;
  ValueTypes types_;  // of the node that is copied
};

/// Copies the graph, with nodes changed by `change` (all but their inputs and outputs), which says whether it did so;
/// whether any was.
bool change_nodes(Graph& graph, const std::function<bool(Node&)>& change);

/// Appends all nodes of `body` to the builder, its arguments standing for `inputs`; returns what its results became.
ValueIds inline_graph(GraphBuilder& builder, const Graph& body, std::span<const ValueId> inputs);

}  // namespace tokamak
