#include "passes/flash_attention.h"

#include "ops/attention.h"

namespace tokamak {

bool flash_attention(Graph& graph, const PassContext&) {
  bool changed = false;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op != &op::attention || node.has_tag("flash")) continue;
    graph.add_tag(n, "flash");
    changed = true;
  }
  return changed;
}

}  // namespace tokamak
