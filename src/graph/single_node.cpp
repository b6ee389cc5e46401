#include "graph/single_node.h"

#include "graph/text.h"

namespace tokamak {

Graph single_node(const Graph& graph, const Node& node) {
  Graph single("kernel");
  Node copy;
  copy.op = node.op;
  copy.attrs = node.attrs;
  copy.body = node.body;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    copy.inputs.push_back(
        single.add_argument(Argument::Kind::kInput, "a" + std::to_string(i), graph.type(node.inputs[i])));
  ValueTypes types;
  for (ValueId output : node.outputs) types.push_back(graph.type(output));
  const Node& added = single.add_node(std::move(copy), types);
  for (size_t i = 0; i < types.size(); ++i) single.add_result("r" + std::to_string(i), added.outputs[i]);
  return single;
}

std::string kernel_key(const Graph& graph, const Node& node) { return print(single_node(graph, node)); }

}  // namespace tokamak
