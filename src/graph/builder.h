// Appends nodes to a graph: checks operands, attributes and shapes through the op's record as it goes.
#pragma once

#include "graph/op_def.h"

namespace tokamak {

class GraphBuilder {
 public:
  explicit GraphBuilder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  // Copies: what the graph has moves when nodes are appended.
  ValueType type(ValueId value) const { return graph_.type(value); }
  Shape shape(ValueId value) const { return graph_.shape(value); }

  ValueId input(std::string name, ValueType type);
  ValueId parameter(std::string name, ValueType type);
  ValueId parameter(std::string name, ValueType type, Role role);
  ValueId state(std::string name, ValueType type);
  ValueId state(std::string name, ValueType type, Role role);
  /// A state that belongs to a parameter: named "<prefix>.<its name>", of its type, and laid out as it is.
  ValueId state_of(ValueId parameter, std::string_view prefix, Role role);
  /// One of its own type; `global` is its shape where the parameter has no rows added.
  ValueId state_of(ValueId parameter, std::string_view prefix, Role role, ValueType type, Shape global);

  /// Appends a node and returns its outputs.
  ValueIds add(const OpDef& op, ValueIds inputs, Attrs attrs = {}, std::shared_ptr<const Graph> body = nullptr);
  /// The same for an op with one output.
  ValueId add1(const OpDef& op, ValueIds inputs, Attrs attrs = {});

  /// Nodes appended from now on belong to this phase.
  void set_phase(Phase phase) { like_.phase = phase; }
  Phase phase() const { return like_.phase; }
  /// Nodes appended from now on belong to the node's phase and carry what passes have decided about it.
  void append_like(const Node& node);

 private:
  Graph& graph_;
  Node like_;  // phase and decisions only
};

/// Within its scope the builder appends to another phase.
class PhaseScope {
 public:
  PhaseScope(GraphBuilder& builder, Phase phase) : builder_(builder), before_(builder.phase()) {
    builder.set_phase(phase);
  }
  ~PhaseScope() { builder_.set_phase(before_); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  GraphBuilder& builder_;
  Phase before_;
};

}  // namespace tokamak
