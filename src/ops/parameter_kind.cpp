#include "ops/parameter_kind.h"

#include "ops/collective.h"
#include "ops/float8_weights.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <algorithm>
#include <cctype>

namespace tokamak {
namespace {

bool is_form_of_its_inputs(const Node& node) {
  const OpDef* forms[] = {&op::cast, &op::reshape, &op::transpose,  &op::slice,         &op::concat,
                          &op::pad,  &op::part,    &op::all_gather, &op::float8_weights};
  return std::ranges::find(forms, node.op) != std::end(forms);
}

void add_kinds(const Graph& graph, ValueId value, std::set<std::string>& kinds) {
  int maker = graph.producer(value);
  if (maker < 0) {
    const Argument& argument = *graph.argument_of(value);
    if (argument.kind == Argument::Kind::kParameter) kinds.insert(kind_of(argument.name));
    return;
  }
  const Node& node = graph.nodes()[size_t(maker)];
  if (!is_form_of_its_inputs(node)) return;
  for (ValueId input : node.inputs) add_kinds(graph, input, kinds);
}

}  // namespace

std::string without_block(const std::string& parameter) {
  for (size_t dot = parameter.find('.'); dot != parameter.npos; dot = parameter.find('.', dot + 1)) {
    size_t end = parameter.find('.', dot + 1);
    bool is_number = end != parameter.npos && end > dot + 1 &&
                     std::all_of(parameter.begin() + int64_t(dot) + 1, parameter.begin() + int64_t(end),
                                 [](unsigned char c) { return std::isdigit(c); });
    if (is_number) return parameter.substr(end + 1);
  }
  return parameter;
}

std::string kind_of(const std::string& parameter) {
  std::string name = without_block(parameter);
  size_t dot = name.rfind('.');
  return dot == name.npos ? name : name.substr(0, dot);
}

std::set<std::string> kinds_behind(const Graph& graph, ValueId value) {
  std::set<std::string> kinds;
  add_kinds(graph, value, kinds);
  return kinds;
}

}  // namespace tokamak
