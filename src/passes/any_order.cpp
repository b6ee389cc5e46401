#include "passes/any_order.h"

#include "ops/attention.h"

namespace tokamak {

bool any_order(Graph& graph, const PassContext&) {
  bool changed = false;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (graph.nodes()[n].op != &op::attention_grad || graph.nodes()[n].has_tag("any_order")) continue;
    graph.add_tag(n, "any_order");
    changed = true;
  }
  return changed;
}

}  // namespace tokamak
