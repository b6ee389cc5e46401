#include "graph/graph.h"

#include <algorithm>
#include <utility>

namespace tokamak {

const Argument* Graph::argument_of(ValueId value) const {
  if (producer(value) >= 0) return nullptr;
  return &*std::lower_bound(arguments_->begin(), arguments_->end(), value,  // they are in the order of their values
                            [](const Argument& argument, ValueId v) { return argument.value < v; });
}

ValueId Graph::find_argument(std::string_view name) const {
  for (const Argument& argument : *arguments_)
    if (argument.name == name) return argument.value;
  return kNoValue;
}

ValueId Graph::find_result(std::string_view name) const {
  for (const Result& result : results_)
    if (result.name == name) return result.value;
  return kNoValue;
}

ArgumentSpec default_spec(Argument::Kind kind, const ValueType& type) {
  switch (kind) {
    case Argument::Kind::kInput: return {Role::kData, "", type.shape};
    case Argument::Kind::kParameter: return {type.shape.size() < 2 ? Role::kVector : Role::kMatrix, "", type.shape};
    case Argument::Kind::kState: return {Role::kState, "", type.shape};
  }
  return {};
}

ValueId Graph::add_argument(Argument::Kind kind, std::string name, ValueType type) {
  ArgumentSpec spec = default_spec(kind, type);
  return add_argument(kind, std::move(name), std::move(type), std::move(spec));
}

ValueId Graph::add_argument(Argument::Kind kind, std::string name, ValueType type, ArgumentSpec spec) {
  auto value = ValueId(types_.size());
  types_.push_back(type);
  producers_.push_back(-1);
  if (arguments_.use_count() != 1) arguments_ = std::make_shared<std::vector<Argument>>(*arguments_);
  arguments_->push_back({kind, std::move(name), value, std::move(spec)});
  return value;
}

void Graph::take_arguments(const Graph& from) {
  const std::vector<Argument>& all = from.arguments();
  for (const Argument& argument : all) types_.push_back(from.type(argument.value));
  producers_.assign(all.size(), -1);
  arguments_ = from.arguments_;
  if (all.empty() || all.back().value == ValueId(all.size()) - 1) return;  // nodes stand behind all of them
  arguments_ = std::make_shared<std::vector<Argument>>(all);
  for (size_t i = 0; i < all.size(); ++i) (*arguments_)[i].value = ValueId(i);
}

const Node& Graph::add_node(Node node, const ValueTypes& output_types) {
  node.outputs.clear();
  for (const ValueType& type : output_types) {
    node.outputs.push_back(ValueId(types_.size()));
    types_.push_back(type);
    producers_.push_back(int(nodes_.size()));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back();
}

void Graph::reserve_as(const Graph& other) {
  nodes_.reserve(other.nodes_.size());
  types_.reserve(other.types_.size());
  producers_.reserve(other.producers_.size());
}

// Counted first, so that there are two lists and not one for each value.
Users::Users(const Graph& graph) : begin_(size_t(graph.num_values()) + 1) {
  // A node may read thousands of values, such as the sum of all gradients' squares.
  auto visit = [&](auto&& use) {
    std::vector<int> last_user(size_t(graph.num_values()), -1);
    for (size_t n = 0; n < graph.nodes().size(); ++n)
      for (ValueId input : graph.nodes()[n].inputs)
        if (std::exchange(last_user[size_t(input)], int(n)) != int(n)) use(size_t(input), int(n));
  };
  visit([&](size_t value, int) { ++begin_[value + 1]; });
  for (size_t value = 1; value < begin_.size(); ++value) begin_[value] += begin_[value - 1];
  nodes_.resize(begin_.back());
  std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
  visit([&](size_t value, int node) { nodes_[next[value]++] = node; });
}

std::vector<bool> find_escaping(const Graph& graph) {
  std::vector<bool> escaping(size_t(graph.num_values()), false);
  for (const Result& result : graph.results()) escaping[size_t(result.value)] = true;
  for (const Update& update : graph.updates()) escaping[size_t(update.value)] = true;
  return escaping;
}

}  // namespace tokamak
