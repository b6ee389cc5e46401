#include "passes/group_units.h"

#include "graph/rewriter.h"
#include "ops/group_form.h"
#include "ops/movement.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tokamak {
namespace {

constexpr size_t kMaxOperands = 24;  // inputs and outputs of a group
constexpr int kMaxNodes = 64;        // of a body

}  // namespace

GroupUnits::GroupUnits(const Graph& graph)
    : graph_(graph), escaping_(find_escaping(graph)), users_(size_t(graph.num_values())),
      producer_(size_t(graph.num_values()), -1) {
  for (const Node& node : graph.nodes()) read_node(node);
  for (int u = size(); u-- > 0;) {
    units_[size_t(u)].live = has_readers(u) || units_[size_t(u)].node->op->effects;
    if (units_[size_t(u)].live) link(u);
  }
}

// Groups read through reshapes: their bodies do not depend on the shape in which a value arrives.
ValueId GroupUnits::behind_views(ValueId value) const {
  for (int p = graph_.producer(value); p >= 0 && graph_.nodes()[size_t(p)].op == &op::reshape;
       p = graph_.producer(value))
    value = graph_.nodes()[size_t(p)].inputs[0];
  return value;
}

void GroupUnits::read_node(const Node& node) {
  Unit unit{&node, {}, double(units_.size()), true};
  if (is_matrix_group(node)) {
    auto [read, is_new] = bodies_.try_emplace(node.body.get());
    if (is_new) read->second = read_group(node);
    unit.group = group_around(node, read->second);
    for (GroupValue& value : unit.group->values)
      if (!value.op) value.outer = behind_views(value.outer);
  }
  for (ValueId output : node.outputs) producer_[size_t(output)] = size();
  units_.push_back(std::move(unit));
}

ValueIds GroupUnits::inputs(int u) const {
  const Unit& unit = units_[size_t(u)];
  if (unit.group) return unit.group->inputs();
  ValueIds inputs = unit.node->inputs;
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  return inputs;
}

ValueIds GroupUnits::outputs(int u) const {
  const Unit& unit = units_[size_t(u)];
  if (!unit.group) return unit.node->outputs;
  ValueIds outputs;
  for (const GroupResult& result : unit.group->results) outputs.push_back(result.outer);
  return outputs;
}

bool GroupUnits::has_readers(int u) const {
  ValueIds values = outputs(u);
  return std::any_of(values.begin(), values.end(), [&](ValueId value) { return is_read(value); });
}

bool GroupUnits::is_residual(ValueId value) const {
  const Argument* argument = graph_.argument_of(value);
  return argument && argument->spec.role == Role::kResidual;
}

double GroupUnits::last_use(ValueId value) const {
  double last = escapes(value) ? std::numeric_limits<double>::infinity() : 0;
  for (int user : users(value)) last = std::max(last, position(user));
  return last;
}

void GroupUnits::link(int u) {
  for (ValueId input : inputs(u)) users_[size_t(input)].push_back(u);
}

void GroupUnits::unlink(int u) {
  for (ValueId input : inputs(u)) std::erase(users_[size_t(input)], u);
}

void GroupUnits::become(int u, GroupBody group, int producer) {
  unlink(u);
  group.prune();
  units_[size_t(u)].group = std::move(group);
  link(u);
  if (has_readers(producer)) return;
  units_[size_t(producer)].live = false;
  unlink(producer);
}

void GroupUnits::merge(int gone, int kept, GroupBody group, double position) {
  unlink(gone);
  unlink(kept);
  group.prune();
  for (const GroupResult& result : group.results) producer_[size_t(result.outer)] = kept;
  units_[size_t(gone)].live = false;
  units_[size_t(kept)].group = std::move(group);
  units_[size_t(kept)].position = position;
  link(kept);
}

Graph GroupUnits::rewrite() {
  std::vector<int> order(units_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return position(a) < position(b); });
  Rewriter rewriter(graph_);
  for (int u : order) {
    Unit& unit = units_[size_t(u)];
    if (!unit.live) continue;
    if (!unit.group) {
      rewriter.copy(*unit.node);
      continue;
    }
    std::erase_if(unit.group->results, [&](const GroupResult& result) { return !is_read(result.outer); });
    unit.group->prune();
    append_group(rewriter, graph_, *unit.node, *unit.group);
  }
  return rewriter.finish();
}

bool within_limits(const GroupBody& group) {
  return group.num_nodes() <= kMaxNodes && group.inputs().size() + group.results.size() <= kMaxOperands;
}

void append_group(Rewriter& rewriter, const Graph& from, const Node& node, const GroupBody& group) {
  ValueIds inputs = group.inputs();
  ValueTypes types;
  for (ValueId input : inputs) types.push_back(from.type(input));
  ValueIds outputs = rewriter.in_place_of(node).add(*group.kind, rewriter.map(inputs), {}, make_body(group, types));
  for (size_t i = 0; i < outputs.size(); ++i) rewriter.replace(group.results[i].outer, outputs[i]);
}

}  // namespace tokamak
