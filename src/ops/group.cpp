// Groups: several nodes as one kernel. The body is a graph; its meaning is the body's meaning. An op for each template
// that kernels are made by: flat, row and column (ops/group_form.h), and fused_matmul (ops/matmul_form.h).
#include "ops/group.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/rewriter.h"
#include "ops/group_form.h"
#include "ops/interpret.h"
#include "ops/matmul_form.h"

namespace tokamak {
namespace {

ValueTypes infer(const NodeSpec& spec) {
  TOKAMAK_CHECK(spec.body, "a group needs a body");
  ValueTypes types;
  for (const Result& result : spec.body->results()) types.push_back(spec.body->type(result.value));
  return types;
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  std::vector<HostTensor> arguments;
  for (const HostTensor* tensor : in) arguments.push_back(*tensor);
  Interpretation run = interpret(*node.body, arguments);
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::move(run.results[i]);
}

ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> inputs) {
  return inline_graph(g, *node.body, inputs);
}

// FLOPs and draws of the body; bytes only of what enters and leaves.
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost total = default_cost(spec, outputs, 0);
  for (const Node& node : spec.body->nodes()) {
    Cost inner = node_cost(*spec.body, node);
    total.flops += inner.flops;
    total.draws += inner.draws;
  }
  return total;
}

void check_matrix_group(const Node& group) { group_space(group); }
void check_matmul(const Node& group) { read_matmul(*group.body, group); }

constexpr OpDef group(std::string_view name, void (*check_body)(const Node&)) {
  return {.name = name,
          .min_inputs = 0,
          .max_inputs = -1,
          .infer = infer,
          .no_gradient = "groups are made after differentiation",
          .reference = reference,
          .decompose = decompose,
          .cost = cost,
          .check_body = check_body};
}

}  // namespace

namespace op {
constinit const OpDef flat = group("flat", check_matrix_group);
constinit const OpDef row = group("row", check_matrix_group);
constinit const OpDef column = group("column", check_matrix_group);
constinit const OpDef fused_matmul = group("fused_matmul", check_matmul);
}  // namespace op

}  // namespace tokamak
