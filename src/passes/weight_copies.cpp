#include "passes/weight_copies.h"

#include "ops/movement.h"

#include <algorithm>

namespace tokamak {

ValueId behind_views(const Graph& graph, ValueId value) {
  for (int p = graph.producer(value); p >= 0 && graph.nodes()[size_t(p)].op == &op::reshape; p = graph.producer(value))
    value = graph.nodes()[size_t(p)].inputs[0];
  return value;
}

bool is_parameter(const Graph& graph, ValueId value) {
  const Argument* argument = graph.argument_of(value);
  return argument && argument->kind == Argument::Kind::kParameter;
}

bool has_backward(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& n) { return n.phase == Phase::kBackward; });
}

}  // namespace tokamak
