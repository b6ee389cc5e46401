#include "graph/builder.h"

#include "base/error.h"
#include "graph/node_error.h"

namespace tokamak {

ValueId GraphBuilder::input(std::string name, ValueType type) {
  return graph_.add_argument(Argument::Kind::kInput, std::move(name), std::move(type));
}

ValueId GraphBuilder::parameter(std::string name, ValueType type) {
  return graph_.add_argument(Argument::Kind::kParameter, std::move(name), std::move(type));
}

ValueId GraphBuilder::parameter(std::string name, ValueType type, Role role) {
  ArgumentSpec spec{role, "", type.shape};
  return graph_.add_argument(Argument::Kind::kParameter, std::move(name), std::move(type), std::move(spec));
}

ValueId GraphBuilder::state(std::string name, ValueType type) {
  return graph_.add_argument(Argument::Kind::kState, std::move(name), std::move(type));
}

ValueId GraphBuilder::state(std::string name, ValueType type, Role role) {
  ArgumentSpec spec{role, "", type.shape};
  return graph_.add_argument(Argument::Kind::kState, std::move(name), std::move(type), std::move(spec));
}

ValueId GraphBuilder::state_of(ValueId parameter, std::string_view prefix, Role role) {
  const Argument* owner = graph_.argument_of(parameter);
  TOKAMAK_CHECK(owner && owner->kind == Argument::Kind::kParameter, "%{} is no parameter", parameter);
  return state_of(parameter, prefix, role, type(parameter), owner->spec.global);
}

ValueId GraphBuilder::state_of(ValueId parameter, std::string_view prefix, Role role, ValueType own, Shape global) {
  const Argument* owner = graph_.argument_of(parameter);
  TOKAMAK_CHECK(owner && owner->kind == Argument::Kind::kParameter, "%{} is no parameter", parameter);
  ArgumentSpec spec{role, owner->name, std::move(global)};
  if (own.shape == type(parameter).shape) {
    spec.blocks = owner->spec.blocks;
    spec.transposed = owner->spec.transposed;
    spec.cuts = owner->spec.cuts;
    spec.unit = owner->spec.unit;
  }
  // What has a number for each row is padded as the parameter is.
  auto padded = size_t(owner->spec.padding.dim);
  if (padded < own.shape.size() && own.shape[padded] == type(parameter).shape[padded])
    spec.padding = owner->spec.padding;
  return graph_.add_argument(Argument::Kind::kState, fmt::format("{}.{}", prefix, owner->name), std::move(own),
                             std::move(spec));
}

ValueIds GraphBuilder::add(const OpDef& op, ValueIds inputs, Attrs attrs, std::shared_ptr<const Graph> body) {
  int count = int(inputs.size());
  if (count < op.min_inputs || (op.max_inputs >= 0 && count > op.max_inputs))
    user_error("[{}] expected {} to {} inputs, got {}", op.name, op.min_inputs, op.max_inputs, count);
  Node node = like_;
  node.op = &op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.body = std::move(body);
  for (ValueId input : node.inputs)
    TOKAMAK_CHECK(input >= 0 && input < graph_.num_values(), "[{}] has an operand that does not exist", op.name);
  ValueTypes types = naming(node, [&] { return op.infer(spec_of(graph_, node)); });
  return graph_.add_node(std::move(node), types).outputs;
}

void GraphBuilder::append_like(const Node& node) {
  like_.phase = node.phase;
  like_.keep_whole = node.keep_whole;
  like_.recompute = node.recompute;
}

ValueId GraphBuilder::add1(const OpDef& op, ValueIds inputs, Attrs attrs) {
  ValueIds outputs = add(op, std::move(inputs), std::move(attrs));
  TOKAMAK_CHECK(outputs.size() == 1, "[{}] has {} outputs where one is expected", op.name, outputs.size());
  return outputs[0];
}

}  // namespace tokamak
