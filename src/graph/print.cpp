#include "graph/op_def.h"
#include "graph/text.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

std::string_view keyword(Argument::Kind kind) {
  switch (kind) {
    case Argument::Kind::kInput: return "input";
    case Argument::Kind::kParameter: return "param";
    case Argument::Kind::kState: return "state";
  }
  return "?";
}

std::string attr_list(const Attrs& attrs) {
  if (attrs.empty()) return "";
  std::string list;
  for (const auto& [name, value] : attrs)
    list += fmt::format("{}{}={}", list.empty() ? "" : ", ", name, to_string(value));
  return " {" + list + "}";
}

// What the kind and the type do not say already.
Attrs spec_attrs(const Argument& argument, const ValueType& type) {
  const ArgumentSpec &spec = argument.spec, known = default_spec(argument.kind, type);
  Attrs attrs;
  if (spec.role != known.role) attrs.set("role", std::string(role_name(spec.role)));
  if (spec.of != known.of) attrs.set("of", spec.of);
  if (spec.global != known.global) attrs.set("global", spec.global);
  if (spec.blocks != known.blocks) attrs.set("blocks", spec.blocks);
  if (spec.transposed) attrs.set("transposed", true);
  if (spec.unit != 1) attrs.set("unit", spec.unit);
  if (spec.padding != Padding{}) attrs.set("padding", print_padding(spec.padding));
  if (spec.cuts != known.cuts) attrs.set("cuts", print_cuts(spec.cuts));
  return attrs;
}

std::string join_values(const ValueIds& values, const std::vector<int>& number) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) out += fmt::format("{}%{}", i ? ", " : "", number[size_t(values[i])]);
  return out;
}

// What follows a node's attributes: its phase, unless it is the first, and what passes have decided.
std::string marks(const Node& node) {
  std::string text;
  if (node.phase == Phase::kBackward) text += " #backward";
  if (node.keep_whole) text += " #keep_whole";
  if (node.recompute) text += " #recompute";
  if (node.phase == Phase::kUpdate) text += " #update";
  return text;
}

std::string node_line(const Graph& graph, const Node& node, const std::vector<int>& number) {
  std::string line =
      fmt::format("{} = {}({})", join_values(node.outputs, number), node.op->name, join_values(node.inputs, number));
  line += attr_list(node.attrs);
  line += marks(node);
  for (size_t i = 0; i < node.outputs.size(); ++i) line += (i ? ", " : " : ") + to_string(graph.type(node.outputs[i]));
  return line;
}

// Arguments first, then in order of definition.
std::vector<int> number_values(const Graph& graph) {
  std::vector<int> number(size_t(graph.num_values()), -1);
  int next = 0;
  for (const Argument& argument : graph.arguments()) number[size_t(argument.value)] = next++;
  for (const Node& node : graph.nodes())
    for (ValueId output : node.outputs) number[size_t(output)] = next++;
  return number;
}

void print_into(std::string& out, const Graph& graph, const std::string& indent) {
  std::vector<int> number = number_values(graph);
  auto at = [&](ValueId value) { return number[size_t(value)]; };
  out += fmt::format("{}graph {} {{\n", indent, graph.name());
  for (const Argument& a : graph.arguments())
    out += fmt::format("{}  {} {} = %{}{} : {}\n", indent, keyword(a.kind), a.name, at(a.value),
                       attr_list(spec_attrs(a, graph.type(a.value))), to_string(graph.type(a.value)));
  for (const Node& node : graph.nodes()) {
    out += fmt::format("{}  {}", indent, node_line(graph, node, number));
    if (node.body) {
      out += " {\n";
      print_into(out, *node.body, indent + "    ");
      out += indent + "  }";
    }
    out += "\n";
  }
  for (const Result& r : graph.results()) out += fmt::format("{}  result {} = %{}\n", indent, r.name, at(r.value));
  for (const Update& u : graph.updates())
    out += fmt::format("{}  update %{} = %{}\n", indent, at(u.target), at(u.value));
  out += indent + "}\n";
}

}  // namespace

std::string print(const Graph& graph) {
  std::string out;
  print_into(out, graph, "");
  return out;
}

std::string print(const Graph& graph, const Node& node) {
  std::vector<int> number(size_t(graph.num_values()));
  for (size_t i = 0; i < number.size(); ++i) number[i] = int(i);
  return node_line(graph, node, number);
}

}  // namespace tokamak
