#include "passes/product_use.h"

#include "graph/op_def.h"
#include "ops/embedding.h"
#include "ops/pointwise.h"

#include <algorithm>

namespace tokamak {
namespace {

// Whether the node only carries a gradient on to the update: a view, another type, a sum over ranks, or over several
// uses of one parameter.
bool passes_gradients_on(const Node& node) {
  return node.op->fusion == Fusion::kView || node.op->together || node.op == &op::cast || node.op == &op::add ||
         node.op == &op::embedding_grad;
}

}  // namespace

std::vector<ProductUse> find_product_uses(const Graph& graph) {
  Users users(graph);
  std::vector<ProductUse> uses(graph.nodes().size(), ProductUse::kForward);
  std::vector<bool> for_update(graph.nodes().size(), false);  // nothing but the update depends on it
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (node.phase == Phase::kForward) continue;
    auto is_for_update = [&](int reader) { return for_update[size_t(reader)]; };
    bool all = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      return std::all_of(users[size_t(output)].begin(), users[size_t(output)].end(), is_for_update);
    });
    uses[n] = all ? ProductUse::kWeightGradient : ProductUse::kInputGradient;
    for_update[n] = node.phase == Phase::kUpdate || (all && passes_gradients_on(node));
  }
  return uses;
}

}  // namespace tokamak
