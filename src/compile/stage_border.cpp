#include "compile/stage_border.h"

#include "base/error.h"
#include "graph/rewriter.h"
#include "model/model.h"
#include "ops/movement.h"

#include <algorithm>
#include <map>
#include <vector>

namespace tokamak {
namespace {

// By value: whether it depends on a parameter and on an input, too.
std::vector<bool> find_activations(const Graph& graph) {
  std::vector<bool> moves(size_t(graph.num_values()), false), weighs = moves;
  for (const Argument& argument : graph.arguments()) {
    moves[size_t(argument.value)] = argument.kind == Argument::Kind::kInput;
    weighs[size_t(argument.value)] = argument.kind == Argument::Kind::kParameter;
  }
  for (const Node& node : graph.nodes())
    for (ValueId output : node.outputs)
      for (ValueId input : node.inputs) {
        if (moves[size_t(input)]) moves[size_t(output)] = true;
        if (weighs[size_t(input)]) weighs[size_t(output)] = true;
      }
  std::vector<bool> both;
  for (size_t v = 0; v < moves.size(); ++v) both.push_back(moves[v] && weighs[v]);
  return both;
}

// What nodes behind `last` read of those up to it, in the order in which it is made: the same for the stage that gives
// it and the one that takes it.
ValueIds find_crossing(const Graph& graph, int last) {
  std::vector<bool> is_activation = find_activations(graph), crosses(is_activation.size(), false);
  for (size_t n = size_t(last) + 1; n < graph.nodes().size(); ++n)
    for (ValueId input : graph.nodes()[n].inputs)
      if (is_activation[size_t(input)] && graph.producer(input) <= last) crosses[size_t(input)] = true;
  ValueIds values;
  for (size_t n = 0; n <= size_t(last); ++n)
    for (ValueId output : graph.nodes()[n].outputs)
      if (crosses[size_t(output)]) values.push_back(output);
  return values;
}

}  // namespace

std::optional<Graph> joined_at_end(const Graph& forward, int64_t block) {
  ValueId end = forward.find_result(block_result(block));
  TOKAMAK_CHECK(end != kNoValue, "no block {}", block);
  int last = forward.producer(end);
  ValueIds values = find_crossing(forward, last);
  if (values == std::vector{end}) return {};
  ValueId joined = kNoValue;
  std::map<ValueId, ValueId> made;  // what crosses, as it was before it was joined: ends of earlier blocks stay there
  Rewriter rewriter(forward);
  for (int n = 0; n < int(forward.nodes().size()); ++n) {
    const Node& node = forward.nodes()[size_t(n)];
    rewriter.copy(node);
    if (n != last) continue;
    GraphBuilder& g = rewriter.in_place_of(node);
    int64_t dim = int64_t(forward.shape(end).size()) - 1, begin = 0;
    joined = concat(g, rewriter.map(values), dim);
    for (ValueId value : values) {
      made[value] = rewriter.map(value);
      int64_t size = forward.shape(value).back();
      rewriter.replace(value, slice(g, joined, dim, begin, size));
      begin += size;
    }
  }
  Graph graph = rewriter.finish();
  std::vector<Result> results = graph.results();
  graph.remove_results();
  for (size_t i = 0; i < results.size(); ++i) {
    auto crosses = made.find(forward.results()[i].value);
    ValueId value = crosses == made.end() ? results[i].value : crosses->second;
    graph.add_result(results[i].name, results[i].name == block_result(block) ? joined : value);
  }
  return graph;
}

}  // namespace tokamak
