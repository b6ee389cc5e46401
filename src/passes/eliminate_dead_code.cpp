#include "passes/eliminate_dead_code.h"

#include "graph/rewriter.h"

#include <algorithm>

namespace tokamak {

bool eliminate_dead_code(Graph& graph, const PassContext&) {
  const auto& nodes = graph.nodes();
  std::vector<bool> needed = find_escaping(graph), live(nodes.size(), false);
  for (size_t n = nodes.size(); n-- > 0;) {
    const auto& outputs = nodes[n].outputs;
    live[n] = nodes[n].op->effects ||
              std::any_of(outputs.begin(), outputs.end(), [&](ValueId output) { return needed[size_t(output)]; });
    if (!live[n]) continue;
    for (ValueId input : nodes[n].inputs) needed[size_t(input)] = true;
  }
  if (std::find(live.begin(), live.end(), false) == live.end()) return false;
  Rewriter rewriter(graph);
  for (size_t n = 0; n < nodes.size(); ++n)
    if (live[n]) rewriter.copy(nodes[n]);
  graph = rewriter.finish();
  return true;
}

}  // namespace tokamak
