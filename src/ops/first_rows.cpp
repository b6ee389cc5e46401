#include "ops/first_rows.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/movement.h"
#include "ops/sharding_rules.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"parts", false}, {"rows"}};

int64_t parts_of(const Attrs& attrs) { return attrs.get_int("parts", 1); }

ValueTypes infer(const NodeSpec& spec) {
  ValueType type = spec.inputs[0];
  int64_t rows = spec.attrs.get_int("rows"), parts = parts_of(spec.attrs);
  if (type.shape.empty() || rows < 1 || rows > type.shape[0])
    user_error("[first_rows] expected as many rows as {} has or fewer, got {}", to_string(type), rows);
  if (parts < 1 || rows % parts != 0 || type.shape[0] % parts != 0)
    user_error("[first_rows] expected parts that divide {} rows of {}, got {}", rows, to_string(type), parts);
  type.shape[0] = rows;
  return {type};
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  auto parts = size_t(parts_of(node.attrs));
  size_t from = in[0]->data.size() / parts, to = out[0].data.size() / parts;
  for (size_t part = 0; part < parts; ++part)
    std::copy_n(in[0]->data.begin() + int64_t(part * from), to, out[0].data.begin() + int64_t(part * to));
}

ValueIds gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  int64_t parts = parts_of(node.attrs);
  return {pad(g, dy[0], 0, 0, (g.shape(node.inputs[0])[0] - node.attrs.get_int("rows")) / parts, parts)};
}

Cost no_cost(const NodeSpec&, std::span<const ValueType>) { return {}; }

ShardingRule rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  return rows_in_parts_rule(spec.inputs[0].shape, outputs[0].shape, parts_of(spec.attrs));
}

void of_part(Attrs& attrs, std::span<const Shape>, std::span<const Shape> outputs) {
  int64_t rows = attrs.get_int("rows");
  if (outputs[0][0] == rows) return;
  int64_t parts = parts_of(attrs) * outputs[0][0] / rows;
  attrs = parts == 1 ? Attrs{{"rows", outputs[0][0]}} : Attrs{{"parts", parts}, {"rows", outputs[0][0]}};
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
                                    .sharding = {.rule = rule, .of_part = of_part}};
}  // namespace op

ValueId first_rows(GraphBuilder& g, ValueId x, int64_t rows, int64_t parts) {
  if (rows == g.shape(x)[0]) return x;
  return g.add1(op::first_rows, {x}, parts == 1 ? Attrs{{"rows", rows}} : Attrs{{"parts", parts}, {"rows", rows}});
}

}  // namespace tokamak
