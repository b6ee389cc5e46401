#include "passes/count_saturated.h"

#include "graph/rewriter.h"
#include "ops/collective.h"
#include "ops/float8.h"
#include "ops/generate.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <numeric>

namespace tokamak {
namespace {

ValueId count(GraphBuilder& g, ValueId narrow) {
  std::vector<int64_t> dims(g.shape(narrow).size());
  std::iota(dims.begin(), dims.end(), 0);
  ValueId wide = cast(g, narrow, DType::kF32), magnitude = maximum(g, wide, neg(g, wide));
  ValueId below = constant(g, largest_float8(DType::kF8E5M2) - 1);
  return reduce_sum(g, less(g, below, magnitude), dims, false);
}

}  // namespace

bool count_saturated(Graph& graph, const PassContext& context) {
  ValueId none = graph.find_result(kSaturated);
  if (none == kNoValue) return false;
  Rewriter rewriter(graph);
  ValueId sum = kNoValue;
  for (const Node& node : graph.nodes()) {
    rewriter.copy(node);
    if (node.op != &op::cast || graph.dtype(node.outputs[0]) != DType::kF8E5M2) continue;
    GraphBuilder& g = rewriter.in_place_of(node);
    ValueId one = count(g, rewriter.map(node.outputs[0]));
    sum = sum == kNoValue ? one : add(g, sum, one);
  }
  if (sum == kNoValue) return false;
  GraphBuilder& g = rewriter.in_phase(Phase::kUpdate);
  for (const MeshAxis& axis : context.mesh.axes)
    if (axis.size > 1) sum = all_reduce(g, sum, axis, Reduction::kSum);
  rewriter.replace(none, sum);
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
