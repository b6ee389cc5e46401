#include "graph/op_def.h"

namespace tokamak {

Cost default_cost(const NodeSpec& spec, std::span<const ValueType> outputs, double flops_per_output) {
  Cost cost;
  for (const ValueType& type : spec.inputs) cost.bytes += double(num_bytes(type));
  for (const ValueType& type : outputs) cost.bytes += double(num_bytes(type));
  if (!outputs.empty()) cost.flops = flops_per_output * double(num_elements(outputs[0].shape));
  return cost;
}

NodeSpec spec_of(const Graph& graph, const Node& node) {
  return {*node.op, OperandTypes(graph, node.inputs), node.attrs, node.body.get()};
}

std::map<std::string, std::vector<const OpDef*>> effects_of(const Graph& graph) {
  std::map<std::string, std::vector<const OpDef*>> effects;
  for (const Node& node : graph.nodes())
    if (node.op->effects) effects[node.op->effects(node)].push_back(node.op);
  return effects;
}

Cost node_cost(const Graph& graph, const Node& node) {
  ValueTypes outputs;
  for (ValueId output : node.outputs) outputs.push_back(graph.type(output));
  NodeSpec spec = spec_of(graph, node);
  return node.op->cost ? node.op->cost(spec, outputs) : default_cost(spec, outputs);
}

}  // namespace tokamak
