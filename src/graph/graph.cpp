#include "graph/graph.h"

#include <algorithm>

namespace tokamak {

const Argument* Graph::argument_of(ValueId value) const {
  if (producer(value) >= 0) return nullptr;
  return &*std::lower_bound(arguments_.begin(), arguments_.end(), value,  // they are in the order of their values
                            [](const Argument& argument, ValueId v) { return argument.value < v; });
}

ValueId Graph::find_argument(std::string_view name) const {
  for (const Argument& argument : arguments_)
    if (argument.name == name) return argument.value;
  return kNoValue;
}

ValueId Graph::find_result(std::string_view name) const {
  for (const Result& result : results_)
    if (result.name == name) return result.value;
  return kNoValue;
}

Layout default_layout(Argument::Kind kind, const ValueType& type) {
  switch (kind) {
    case Argument::Kind::kInput: return {Role::kData, "", type.shape};
    case Argument::Kind::kParameter: return {type.shape.size() < 2 ? Role::kVector : Role::kMatrix, "", type.shape};
    case Argument::Kind::kState: return {Role::kState, "", type.shape};
  }
  return {};
}

ValueId Graph::add_argument(Argument::Kind kind, std::string name, ValueType type) {
  Layout layout = default_layout(kind, type);
  return add_argument(kind, std::move(name), std::move(type), std::move(layout));
}

ValueId Graph::add_argument(Argument::Kind kind, std::string name, ValueType type, Layout layout) {
  auto value = ValueId(types_.size());
  types_.push_back(std::move(type));
  producers_.push_back(-1);
  arguments_.push_back({kind, std::move(name), value, std::move(layout)});
  return value;
}

const Node& Graph::add_node(Node node, const std::vector<ValueType>& output_types) {
  node.outputs.clear();
  for (const ValueType& type : output_types) {
    node.outputs.push_back(ValueId(types_.size()));
    types_.push_back(type);
    producers_.push_back(int(nodes_.size()));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back();
}

std::vector<std::vector<int>> find_users(const Graph& graph) {
  std::vector<std::vector<int>> users(size_t(graph.num_values()));
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (ValueId input : graph.nodes()[n].inputs)
      if (auto& list = users[size_t(input)]; list.empty() || list.back() != int(n)) list.push_back(int(n));
  return users;
}

std::vector<bool> find_escaping(const Graph& graph) {
  std::vector<bool> escaping(size_t(graph.num_values()), false);
  for (const Result& result : graph.results()) escaping[size_t(result.value)] = true;
  for (const Update& update : graph.updates()) escaping[size_t(update.value)] = true;
  return escaping;
}

}  // namespace tokamak
