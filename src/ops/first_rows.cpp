#include "ops/first_rows.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/movement.h"
#include "ops/sharding_rules.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"rows"}};

std::vector<ValueType> infer(const NodeSpec& spec) {
  ValueType type = spec.inputs[0];
  int64_t rows = spec.attrs.get_int("rows");
  if (type.shape.empty() || rows < 1 || rows > type.shape[0])
    user_error("[first_rows] expected as many rows as {} has or fewer, got {}", to_string(type), rows);
  type.shape[0] = rows;
  return {type};
}

void reference(const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  std::copy_n(in[0]->data.begin(), out[0].data.size(), out[0].data.begin());
}

std::vector<ValueId> gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  return {pad(g, dy[0], 0, 0, g.shape(node.inputs[0])[0] - node.attrs.get_int("rows"))};
}

Cost no_cost(const NodeSpec&, std::span<const ValueType>) { return {}; }

ShardingRule rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule;
  OperandFactors from = factors_of(rule, spec.inputs[0].shape), to = from;
  rule.factors[size_t(from[0][0])].whole = true;
  to[0] = {rule.whole(outputs[0].shape[0])};
  rule.inputs = {from};
  rule.outputs = {to};
  rule.linear = {{0}};
  return rule;
}

}  // namespace

namespace op {
constinit const OpDef first_rows = {.name = "first_rows",
                                    .attrs = kAttrs,
                                    .infer = infer,
                                    .gradient = gradient,
                                    .reference = reference,
                                    .cost = no_cost,
                                    .fusion = Fusion::kView,
                                    .sharding = {.rule = rule}};
}  // namespace op

ValueId first_rows(GraphBuilder& g, ValueId x, int64_t rows) {
  return rows == g.shape(x)[0] ? x : g.add1(op::first_rows, {x}, {{"rows", rows}});
}

}  // namespace tokamak
