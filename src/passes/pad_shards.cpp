#include "passes/pad_shards.h"

#include "base/divide.h"
#include "graph/rewriter.h"
#include "ops/first_rows.h"
#include "passes/seed_cuts.h"

#include <algorithm>

namespace tokamak {
namespace {

bool takes_rows_of_parameter(const Graph& graph, const Node& node) {
  if (node.op != &op::first_rows) return false;
  const Argument* argument = graph.argument_of(node.inputs[0]);
  return argument && argument->kind == Argument::Kind::kParameter;
}

}  // namespace

bool pad_shards(Graph& graph, const PassContext& context) {
  std::map<ValueId, ArgumentForm> padded;
  for (const Argument& argument : graph.arguments()) {
    if (argument.kind != Argument::Kind::kParameter) continue;
    Undivided rows = undivided_rows(graph, argument, context);
    ValueType type = graph.type(argument.value);
    if (rows.ranks == 1) continue;
    type.shape[0] = rows.parts * round_up(type.shape[0] / rows.parts, rows.ranks);
    ArgumentForm form = with_type(argument, type);
    form.spec.padding = {.dim = 0, .parts = rows.parts, .computed = false};
    padded[argument.value] = std::move(form);
  }
  if (padded.empty()) return false;
  Rewriter rewriter(graph, padded);
  for (const Node& node : graph.nodes()) {
    // Before what reads it first, so that its gradient's rows are added as soon as there is that gradient.
    for (ValueId input : node.inputs)
      if (auto taken = padded.extract(input))
        rewriter.replace(input, first_rows(rewriter.in_place_of(node), rewriter.map(input), graph.shape(input)[0],
                                           taken.mapped().spec.padding.parts));
    rewriter.copy(node);
  }
  graph = rewriter.finish();
  return true;
}

Graph with_rows_where_read(const Graph& graph) {
  std::map<ValueId, const Node*> views;  // by what they give
  for (const Node& node : graph.nodes())
    if (takes_rows_of_parameter(graph, node)) views[node.outputs[0]] = &node;
  if (views.empty()) return graph;
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (views.contains(node.outputs[0])) {
      rewriter.copy(node);
      continue;
    }
    for (ValueId input : node.inputs)
      if (auto view = views.find(input); view != views.end()) {
        GraphBuilder& g = rewriter.in_place_of(node);
        rewriter.replace(input, g.add1(op::first_rows, {rewriter.map(view->second->inputs[0])}, view->second->attrs));
      }
    rewriter.copy(node);
  }
  return rewriter.finish();
}

}  // namespace tokamak
