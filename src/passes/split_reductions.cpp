#include "passes/split_reductions.h"

#include "graph/rewriter.h"
#include "ops/movement.h"
#include "ops/reduce.h"

#include <algorithm>

namespace tokamak {
namespace {

// Results that are too few to keep a device busy, and elements of each that are worth a second kernel.
constexpr int64_t kFewResults = 64, kManyElements = int64_t{1} << 16;
// Of the last dim: fewer leave too much for the second kernel.
constexpr int64_t kLeastColumns = 32;

bool is_split(const Graph& graph, const Node& node) {
  if (node.op != &op::reduce_sum && node.op != &op::reduce_max) return false;
  const Shape& shape = graph.shape(node.inputs[0]);
  std::vector<int64_t> dims = node.attrs.get_ints("dims");
  std::sort(dims.begin(), dims.end());
  bool are_last = dims.size() > 1 && dims.back() == int64_t(shape.size()) - 1 &&
                  dims.back() - dims.front() == int64_t(dims.size()) - 1;
  int64_t results = num_elements(graph.shape(node.outputs[0]));
  return are_last && shape.back() >= kLeastColumns && results <= kFewResults &&
         num_elements(shape) / results >= kManyElements;
}

ValueId reduce_last(GraphBuilder& g, const OpDef& op, ValueId of) {
  return g.add1(op, {of}, {{"dims", std::vector<int64_t>{int64_t(g.shape(of).size()) - 1}}, {"keep", true}});
}

}  // namespace

bool split_reductions(Graph& graph, const PassContext&) {
  const auto& nodes = graph.nodes();
  auto splits = [&](const Node& node) { return is_split(graph, node); };
  if (std::none_of(nodes.begin(), nodes.end(), splits)) return false;
  Rewriter rewriter(graph);
  for (const Node& node : nodes) {
    if (!splits(node)) {
      rewriter.copy(node);
      continue;
    }
    GraphBuilder& g = rewriter.in_place_of(node);
    const Shape& shape = graph.shape(node.outputs[0]);
    ValueId of_rows = reduce_last(g, *node.op, rewriter.map(node.inputs[0]));
    ValueId result = reduce_last(g, *node.op, reshape(g, of_rows, {num_elements(shape), -1}));
    rewriter.replace(node.outputs[0], reshape(g, result, shape));
  }
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
