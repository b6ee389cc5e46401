#include "base/error.h"
#include "graph/node_error.h"
#include "graph/op_def.h"

#include <algorithm>

namespace tokamak {
namespace {

void verify_attrs(const Node& node) {
  for (const auto& [name, value] : node.attrs) {
    bool known = std::any_of(node.op->attrs.begin(), node.op->attrs.end(),
                             [&, key = std::string_view(name)](const AttrDef& def) { return def.name == key; });
    TOKAMAK_CHECK(known, "[{}] does not declare the attribute '{}'", node.op->name, name);
  }
  for (const AttrDef& def : node.op->attrs)
    TOKAMAK_CHECK(!def.required || node.attrs.find(def.name), "[{}] lacks the attribute '{}'", node.op->name, def.name);
}

// Of a node that its body can stand for, a group: argument i is input i.
void verify_operands(const Graph& graph, const Node& node) {
  const Graph& body = *node.body;
  TOKAMAK_CHECK(body.arguments().size() == node.inputs.size(), "[{}] has {} inputs and a body of {} arguments",
                node.op->name, node.inputs.size(), body.arguments().size());
  for (size_t i = 0; i < node.inputs.size(); ++i)
    TOKAMAK_CHECK(body.type(body.arguments()[i].value) == graph.type(node.inputs[i]),
                  "[{}] input {} is {}, its body expects {}", node.op->name, i, to_string(graph.type(node.inputs[i])),
                  to_string(body.type(body.arguments()[i].value)));
}

void verify_body(const Graph& graph, const Node& node) {
  const Graph& body = *node.body;
  if (node.op->decompose) verify_operands(graph, node);
  for (const Node& inner : body.nodes())
    TOKAMAK_CHECK(!inner.op->effects, "[{}] has effects and stands in a body", inner.op->name);
  verify(body);
  if (node.op->check_body) node.op->check_body(node);
}

void verify_node(const Graph& graph, const Node& node, std::vector<bool>& defined) {
  TOKAMAK_CHECK(node.op, "a node has no op");
  for (ValueId input : node.inputs)
    TOKAMAK_CHECK(input >= 0 && input < graph.num_values() && defined[size_t(input)],
                  "[{}] reads %{} before it is defined", node.op->name, input);
  TOKAMAK_CHECK(!node.op->effects || node.op->fusion == Fusion::kOpaque, "[{}] has effects and is not opaque",
                node.op->name);
  verify_attrs(node);
  if (node.body) verify_body(graph, node);
  ValueTypes types = node.op->infer(spec_of(graph, node));
  TOKAMAK_CHECK(types.size() == node.outputs.size(), "[{}] infers {} outputs, the node has {}", node.op->name,
                types.size(), node.outputs.size());
  for (size_t i = 0; i < types.size(); ++i) {
    ValueId output = node.outputs[i];
    TOKAMAK_CHECK(types[i] == graph.type(output), "[{}] infers {} for %{}, the graph says {}", node.op->name,
                  to_string(types[i]), output, to_string(graph.type(output)));
    TOKAMAK_CHECK(!defined[size_t(output)], "%{} is defined twice", output);
    defined[size_t(output)] = true;
  }
}

void verify_spec(const Graph& graph, const Argument& argument) {
  const ArgumentSpec& spec = argument.spec;
  bool is_data = argument.kind == Argument::Kind::kInput, is_param = argument.kind == Argument::Kind::kParameter;
  TOKAMAK_CHECK((spec.role == Role::kData) == is_data && is_parameter(spec.role) == is_param,
                "argument '{}' has the role of another kind of argument: {}", argument.name, role_name(spec.role));
  const Shape& stored = graph.shape(argument.value);
  bool has_dims = std::all_of(spec.cuts.begin(), spec.cuts.end(), [&](const Cut& cut) {
    return cut.term || (cut.dim >= 0 && cut.dim < int64_t(stored.size()));
  });
  Shape whole = has_dims ? whole_shape(stored, spec.cuts) : stored;
  TOKAMAK_CHECK(has_dims && can_cut(whole, spec.cuts), "argument '{}', stored as {}, cannot be cut as \"{}\" says",
                argument.name, to_string(stored), print_cuts(spec.cuts));
  TOKAMAK_CHECK(spec.blocks == 1 || (!whole.empty() && spec.blocks > 1 && whole.back() % spec.blocks == 0),
                "argument '{}' of shape {} cannot have {} blocks", argument.name, to_string(whole), spec.blocks);
  TOKAMAK_CHECK(!spec.transposed || spec.blocks == 1, "argument '{}' is transposed and has {} blocks", argument.name,
                spec.blocks);
  TOKAMAK_CHECK(can_store(whole, spec.global, spec.padding), "argument '{}' is stored as {}, but is {}", argument.name,
                to_string(whole), to_string(spec.global));
}

}  // namespace

void verify(const Graph& graph) {
  std::vector<bool> defined(size_t(graph.num_values()), false);
  for (const Argument& argument : graph.arguments()) {
    verify_spec(graph, argument);
    defined[size_t(argument.value)] = true;
  }
  for (const Node& node : graph.nodes()) naming(node, [&] { verify_node(graph, node, defined); });
  for (const Result& result : graph.results())
    TOKAMAK_CHECK(defined[size_t(result.value)], "result '{}' is not defined", result.name);
  for (const Update& update : graph.updates()) {
    const Argument* target = graph.argument_of(update.target);
    TOKAMAK_CHECK(target && target->kind != Argument::Kind::kInput, "an update must name a parameter or a state");
    TOKAMAK_CHECK(defined[size_t(update.value)] && graph.type(update.value) == graph.type(update.target),
                  "the update of '{}' has type {}, expected {}", target->name, to_string(graph.type(update.value)),
                  to_string(graph.type(update.target)));
  }
}

}  // namespace tokamak
