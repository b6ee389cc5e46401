// group: several pointwise and reduction nodes as one kernel. The body is a graph; its meaning is the body's meaning.

#include "ops/group.h"

#include "base/error.h"
#include "graph/rewriter.h"
#include "ops/interpret.h"

namespace tokamak {
namespace {

// kind: flat, row, column or matmul: which kernel template runs it (passes/group_info.h).
constexpr AttrDef kGroupAttrs[] = {{"kind"}};

std::vector<ValueType> infer(const NodeSpec& spec) {
  TOKAMAK_CHECK(spec.body, "a group needs a body");
  std::vector<ValueType> types;
  for (const Result& result : spec.body->results()) types.push_back(spec.body->type(result.value));
  return types;
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  std::vector<HostTensor> arguments;
  for (const HostTensor* tensor : in) arguments.push_back(*tensor);
  Interpretation run = interpret(*node.body, arguments);
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::move(run.results[i]);
}

std::vector<ValueId> decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> inputs) {
  return inline_graph(g, *node.body, inputs);
}

// FLOPs of the body; bytes only of what enters and leaves.
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost total = default_cost(spec, outputs, 0);
  for (const Node& node : spec.body->nodes()) total.flops += node_cost(*spec.body, node).flops;
  return total;
}

}  // namespace

namespace op {
constinit const OpDef group = {.name = "group",
                               .min_inputs = 0,
                               .max_inputs = -1,
                               .attrs = kGroupAttrs,
                               .infer = infer,
                               .no_gradient = "groups are made after differentiation",
                               .reference = reference,
                               .decompose = decompose,
                               .cost = cost};
}  // namespace op

}  // namespace tokamak
