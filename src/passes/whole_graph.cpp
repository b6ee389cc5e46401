#include "passes/whole_graph.h"

#include "graph/node_error.h"
#include "ops/first_rows.h"
#include "ops/movement.h"
#include "ops/sharding_rules.h"

#include <algorithm>

namespace tokamak {

WholeGraph::WholeGraph(const Graph& graph)
    : graph_(graph), append_(graph_), users_(find_users(graph)), escaping_(find_escaping(graph)),
      updated_(users_.size(), false), kept_for_sum_(users_.size(), false), may_be_added_on_(users_.size(), false) {
  for (const Update& update : graph_.updates()) {
    updated_[size_t(update.value)] = true;
    kept_for_sum_[size_t(update.value)] = graph_.argument_of(update.target)->spec.role == Role::kGradientSum;
  }
  std::vector<bool> is_linear;  // by node
  rules_.reserve(graph_.nodes().size());
  for (const Node& node : graph_.nodes()) {
    const ShardingRule& rule = rules_.emplace_back(rule_of(node));
    is_linear.push_back(
        std::any_of(rule.linear.begin(), rule.linear.end(), [](const auto& set) { return set.size() > 1; }));
  }
  for (size_t value = 0; value < users_.size(); ++value)
    may_be_added_on_[value] = !escaping_[value] && std::all_of(users_[value].begin(), users_[value].end(),
                                                               [&](int user) { return is_linear[size_t(user)]; });
}

ShardingRule WholeGraph::rule_of(const Node& node) const {
  ValueTypes types;
  for (ValueId output : node.outputs) types.push_back(graph_.type(output));
  return sharding_rule(spec_of(graph_, node), types);
}

bool WholeGraph::is_parameter(ValueId value) const {
  if (int producer = graph_.producer(value); producer >= 0) {
    const Node& node = graph_.nodes()[size_t(producer)];
    return node.op == &op::first_rows && is_parameter(node.inputs[0]);
  }
  const Argument* argument = graph_.argument_of(value);
  return argument && argument->kind == Argument::Kind::kParameter;
}

ValueId WholeGraph::with_rows_added(ValueId value) const {
  if (!came(value) || escaping_[size_t(value)] || users(value).size() != 1) return value;
  const Node& reader = graph_.nodes()[size_t(users(value)[0])];
  return reader.op == &op::pad && reader.attrs.get_int("dim") == 0 ? reader.outputs[0] : value;
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
