#include "passes/flash_attention.h"

#include "graph/rewriter.h"
#include "ops/attention.h"

#include <utility>

namespace tokamak {

bool flash_attention(Graph& graph, const PassContext&) {
  return change_nodes(graph, [](Node& node) {
    if (node.op != &op::attention) return false;
    return !std::exchange(node.keep_whole, true);
  });
}

}  // namespace tokamak
