#include "passes/extract.h"

#include "graph/builder.h"
#include "ops/pointwise.h"

#include <algorithm>

namespace tokamak {
namespace {

// Which values have to be there, without what makes those that are given.
std::vector<bool> find_needed(const Graph& graph, const Part& part) {
  std::vector<bool> needed(size_t(graph.num_values()), false);
  for (const Result& result : part.results) needed[size_t(result.value)] = true;
  for (const Update& update : part.updates) needed[size_t(update.value)] = needed[size_t(update.target)] = true;
  for (const auto& [value, state] : part.left) needed[size_t(value)] = true;
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (std::any_of(node.outputs.begin(), node.outputs.end(),
                    [&](ValueId v) { return needed[size_t(v)] && !part.given.count(v); }))
      for (ValueId input : node.inputs) needed[size_t(input)] = true;
  }
  return needed;
}

}  // namespace

Graph extract(const Graph& graph, const Part& part) {
  Graph out(part.name);
  GraphBuilder g(out);
  std::vector<bool> needed = find_needed(graph, part);
  std::vector<ValueId> map(size_t(graph.num_values()), kNoValue);
  auto add_state = [&](const StandIn& state) {
    if (ValueId known = out.find_argument(state.name); known != kNoValue) return known;  // of values that are the same
    return out.add_argument(Argument::Kind::kState, state.name, state.type, state.spec);
  };
  for (const Argument& a : graph.arguments())
    if (needed[size_t(a.value)]) map[size_t(a.value)] = out.add_argument(a.kind, a.name, graph.type(a.value), a.spec);
  ValueIds left;
  for (const auto& [value, state] : part.left) left.push_back(add_state(state));
  for (const auto& [value, state] : part.given)
    if (needed[size_t(value)]) map[size_t(value)] = add_state(state);
  for (const auto& [value, state] : part.given)
    if (needed[size_t(value)]) map[size_t(value)] = cast(g, map[size_t(value)], graph.dtype(value));
  for (const Node& node : graph.nodes()) {
    auto is_made = [&](ValueId v) { return needed[size_t(v)] && !part.given.count(v); };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), is_made)) continue;
    ValueIds inputs;
    for (ValueId input : node.inputs) inputs.push_back(map[size_t(input)]);
    g.append_like(node);
    ValueIds outputs = g.add(*node.op, inputs, node.attrs, node.body);
    for (size_t o = 0; o < outputs.size(); ++o)
      if (!part.given.count(node.outputs[o])) map[size_t(node.outputs[o])] = outputs[o];
  }
  for (const Result& result : part.results) out.add_result(result.name, map[size_t(result.value)]);
  for (const Update& update : part.updates) out.add_update(map[size_t(update.target)], map[size_t(update.value)]);
  for (size_t i = 0; i < left.size(); ++i)
    out.add_update(left[i], cast(g, map[size_t(part.left[i].first)], part.left[i].second.type.dtype));
  return out;
}

}  // namespace tokamak
