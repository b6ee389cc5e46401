#include "passes/pointwise_function.h"

#include "ops/generate.h"
#include "ops/group.h"
#include "ops/matmul_form.h"  // is_scalar_op
#include "passes/combine_groups.h"
#include "passes/group_of_node.h"

#include <algorithm>
#include <utility>

namespace tokamak {
namespace {

// The group with constants made inside it.
GroupBody with_constants(const Graph& graph, GroupBody group) {
  for (ValueId input : group.inputs()) {
    int from = graph.producer(input);
    if (from < 0 || graph.nodes()[size_t(from)].op != &op::flat) continue;
    GroupBody made = group_around(graph.nodes()[size_t(from)]);
    if (made.values.size() != 1 || !made.values[0].is(op::constant)) continue;
    if (auto inlined = inline_generator(made, group)) group = std::move(*inlined);
  }
  return group;
}

// Nothing where the group is no function of `x` and at most one matrix of its type.
std::optional<PointwiseFunction> function_of(const Graph& graph, const GroupBody& group, ValueId x) {
  PointwiseFunction function{group, kNoValue, {}, kNoValue};
  for (GroupValue& value : function.body.values) {
    if (value.is(op::constant)) continue;
    if (!group.is_full(value)) return {};
    if (!value.is_input()) {
      if (!is_scalar_op(*value.op)) return {};
    } else if (value.outer == x) {
      value.outer = 0;
    } else {
      bool only = function.operand == kNoValue || function.operand == value.outer;
      if (!only || graph.type(value.outer) != graph.type(x)) return {};
      function.operand = std::exchange(value.outer, 1);
    }
  }
  function.body.results[0].outer = 0;
  return function;
}

}  // namespace

bool Readers::is_single_flat(int node) const {
  const Node& reader = graph_.nodes()[size_t(node)];
  return reader.op == &op::flat && reader.outputs.size() == 1;
}

int Readers::only(ValueId value) const {
  std::span<const int> users = of(value);
  return users.size() == 1 && !escaping_[size_t(value)] && is_single_flat(users[0]) ? users[0] : -1;
}

std::vector<PointwiseFunction> functions_of(const Graph& graph, const Readers& readers, int first, ValueId x) {
  std::vector<PointwiseFunction> found;
  std::optional<GroupBody> all;
  std::vector<int> members;
  Phase phase = graph.nodes()[size_t(first)].phase;
  for (int next = first; next >= 0;) {
    const Node& node = graph.nodes()[size_t(next)];
    if (!readers.is_single_flat(next) || node.phase != phase) break;
    ValueId result = node.outputs[0];
    GroupBody one = with_constants(graph, group_around(node));
    all = all ? combine_groups(*all, one) : one;
    if (!all) break;
    std::erase_if(all->results, [&](const GroupResult& r) { return r.outer != result; });
    all->prune();
    members.push_back(next);
    std::optional<PointwiseFunction> function = function_of(graph, *all, x);
    if (!function) break;
    function->members = members;
    function->result = result;
    if (graph.type(result) == graph.type(x)) found.insert(found.begin(), std::move(*function));
    next = readers.only(result);
  }
  return found;
}

}  // namespace tokamak
