#include "passes/any_order.h"

#include "graph/rewriter.h"
#include "ops/attention.h"

namespace tokamak {

bool any_order(Graph& graph, const PassContext&) {
  return change_nodes(graph, [](Node& node) {
    if (node.op != &op::attention_grad || node.attrs.find("any_order")) return false;
    node.attrs.set("any_order", true);
    return true;
  });
}

}  // namespace tokamak
