#include "graph/rewriter.h"

#include "base/error.h"
#include "graph/node_error.h"

namespace tokamak {

ArgumentForm with_type(const Argument& argument, ValueType type) { return {std::move(type), argument.spec}; }

Rewriter::Rewriter(const Graph& from, const std::map<ValueId, ArgumentForm>& changed)
    : from_(from), to_(from.name()), builder_(to_), map_(size_t(from.num_values()), kNoValue) {
  to_.reserve_as(from);
  if (changed.empty()) {
    to_.take_arguments(from);
    for (size_t i = 0; i < from.arguments().size(); ++i)
      map_[size_t(from.arguments()[i].value)] = to_.arguments()[i].value;
    return;
  }
  for (const Argument& argument : from.arguments()) {
    auto form = changed.find(argument.value);
    bool is_kept = form == changed.end();
    map_[size_t(argument.value)] =
        to_.add_argument(argument.kind, argument.name, is_kept ? from.type(argument.value) : form->second.type,
                         is_kept ? argument.spec : form->second.spec);
  }
}

ValueId Rewriter::map(ValueId old_value) const {
  if (old_value == kNoValue) return kNoValue;
  ValueId value = map_[size_t(old_value)];
  TOKAMAK_CHECK(value != kNoValue, "value {} has not been rewritten yet",
                describe(from_.nodes()[size_t(from_.producer(old_value))]));
  return value;
}

ValueIds Rewriter::map(const ValueIds& old_values) const {
  ValueIds values;
  values.reserve(old_values.size());
  for (ValueId value : old_values) values.push_back(map(value));
  return values;
}

GraphBuilder& Rewriter::in_place_of(const Node& node) {
  builder_.append_like(node);
  return builder_;
}

GraphBuilder& Rewriter::in_phase(Phase phase) {
  Node node;
  node.phase = phase;
  return in_place_of(node);
}

// What the outputs of an old node are needs no thought where its inputs are what they were.
void Rewriter::copy(const Node& node) {
  ValueIds inputs = naming(node, [&] { return map(node.inputs); });
  bool is_old =
      !std::less<>()(&node, from_.nodes().data()) && std::less<>()(&node, from_.nodes().data() + from_.nodes().size());
  for (size_t i = 0; is_old && i < inputs.size(); ++i) is_old = to_.type(inputs[i]) == from_.type(node.inputs[i]);
  if (!is_old) {
    replace(node.outputs, in_place_of(node).add(*node.op, std::move(inputs), node.attrs, node.body));
    return;
  }
  types_.clear();
  for (ValueId output : node.outputs) types_.push_back(from_.type(output));
  Node same{.op = node.op,
            .inputs = std::move(inputs),
            .outputs = {},
            .attrs = node.attrs,
            .body = node.body,
            .phase = node.phase,
            .keep_whole = node.keep_whole,
            .recompute = node.recompute};
  replace(node.outputs, to_.add_node(std::move(same), types_).outputs);
}

void Rewriter::replace(ValueId old_value, ValueId new_value) { map_[size_t(old_value)] = new_value; }

void Rewriter::replace(const ValueIds& old_values, const ValueIds& new_values) {
  TOKAMAK_CHECK(old_values.size() == new_values.size(), "{} values replaced by {}", old_values.size(),
                new_values.size());
  for (size_t i = 0; i < old_values.size(); ++i) replace(old_values[i], new_values[i]);
}

Graph Rewriter::finish() {
  for (const Result& result : from_.results()) to_.add_result(result.name, map(result.value));
  for (const Update& update : from_.updates()) to_.add_update(map(update.target), map(update.value));
  return std::move(to_);
}

bool change_nodes(Graph& graph, const std::function<bool(Node&)>& change) {
  Rewriter rewriter(graph);
  bool changed = false;
  for (Node node : graph.nodes()) {
    changed |= change(node);
    rewriter.copy(node);
  }
  if (changed) graph = rewriter.finish();
  return changed;
}

ValueIds inline_graph(GraphBuilder& builder, const Graph& body, std::span<const ValueId> inputs) {
  TOKAMAK_CHECK(inputs.size() == body.arguments().size(), "a body of {} arguments was given {} inputs",
                body.arguments().size(), inputs.size());
  std::vector<ValueId> map(size_t(body.num_values()), kNoValue);
  for (size_t i = 0; i < inputs.size(); ++i) map[size_t(body.arguments()[i].value)] = inputs[i];
  for (const Node& node : body.nodes()) {
    ValueIds operands;
    for (ValueId input : node.inputs) operands.push_back(map[size_t(input)]);
    ValueIds outputs = builder.add(*node.op, std::move(operands), node.attrs, node.body);
    for (size_t i = 0; i < outputs.size(); ++i) map[size_t(node.outputs[i])] = outputs[i];
  }
  ValueIds results;
  for (const Result& result : body.results()) results.push_back(map[size_t(result.value)]);
  return results;
}

}  // namespace tokamak
