#include "passes/whole_graph.h"

#include "graph/node_error.h"
#include "ops/sharding_rules.h"

#include <algorithm>

namespace tokamak {

WholeGraph::WholeGraph(const Graph& graph)
    : graph_(graph), append_(graph_), users_(find_users(graph)), escaping_(find_escaping(graph)) {}

ShardingRule WholeGraph::rule_of(const Node& node) const {
  std::vector<ValueType> types;
  for (ValueId output : node.outputs) types.push_back(graph_.type(output));
  return sharding_rule(spec_of(graph_, node), types);
}

bool WholeGraph::is_parameter(ValueId value) const {
  const Argument* argument = graph_.argument_of(value);
  return argument && argument->kind == Argument::Kind::kParameter;
}

bool WholeGraph::is_updated(ValueId value) const {
  const auto& updates = graph_.updates();
  return std::any_of(updates.begin(), updates.end(), [&](const Update& update) { return update.value == value; });
}

bool WholeGraph::may_be_added_on(ValueId value) const {
  if (!came(value) || escaping_[size_t(value)]) return false;
  return std::all_of(users(value).begin(), users(value).end(), [&](int user) {
    ShardingRule rule = rule_of(graph_.nodes()[size_t(user)]);
    return std::any_of(rule.linear.begin(), rule.linear.end(), [](const auto& set) { return set.size() > 1; });
  });
}

bool WholeGraph::is_made_where_read(ValueId value) const {
  int producer = graph_.producer(origin(value));
  return producer >= 0 && graph_.nodes()[size_t(producer)].inputs.empty();
}

ValueId WholeGraph::origin(ValueId value) const {
  auto found = made_as_.find(value);
  return found == made_as_.end() ? value : found->second;
}

}  // namespace tokamak
