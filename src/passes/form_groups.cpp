#include "passes/form_groups.h"

#include "graph/rewriter.h"
#include "ops/ops.h"
#include "passes/group_core.h"

namespace tokamak {
namespace {

void add_group(Rewriter& rewriter, const Graph& graph, const GroupCore& core, const std::vector<std::string>& tags) {
  std::vector<ValueId> inputs = core.inputs();
  std::vector<ValueType> types;
  for (ValueId input : inputs) types.push_back(graph.type(input));
  rewriter.builder().set_tags(tags);
  std::vector<ValueId> outputs =
      rewriter.builder().add(op::group, rewriter.map(inputs), {{"kind", core.kind}}, make_body(core, types));
  rewriter.builder().set_tags({});
  for (size_t i = 0; i < outputs.size(); ++i) rewriter.replace(core.results[i].outer, outputs[i]);
}

}  // namespace

bool form_groups(Graph& graph, const PassContext&) {
  std::vector<bool> read = find_escaping(graph);
  for (const Node& node : graph.nodes())
    for (ValueId input : node.inputs) read[size_t(input)] = true;
  Rewriter rewriter(graph);
  bool changed = false;
  for (const Node& node : graph.nodes()) {
    std::vector<bool> wanted;
    for (ValueId output : node.outputs) wanted.push_back(read[size_t(output)]);
    std::optional<GroupCore> core = core_of_node(graph, node, wanted);
    if (core)
      add_group(rewriter, graph, *core, node.tags);
    else
      rewriter.copy(node);
    changed |= core.has_value();
  }
  if (changed) graph = rewriter.finish();
  return changed;
}

}  // namespace tokamak
