#include "passes/form_groups.h"

#include "graph/rewriter.h"
#include "passes/group_units.h"

namespace tokamak {

bool form_groups(Graph& graph, const PassContext&) {
  std::vector<bool> read = find_escaping(graph);
  for (const Node& node : graph.nodes())
    for (ValueId input : node.inputs) read[size_t(input)] = true;
  Rewriter rewriter(graph);
  bool changed = false;
  for (const Node& node : graph.nodes()) {
    std::vector<bool> wanted;
    for (ValueId output : node.outputs) wanted.push_back(read[size_t(output)]);
    std::optional<GroupBody> group = group_of_node(graph, node, wanted);
    if (group)
      append_group(rewriter, graph, node, *group);
    else
      rewriter.copy(node);
    changed |= group.has_value();
  }
  if (changed) graph = rewriter.finish();
  return changed;
}

}  // namespace tokamak
