// dropout(x, rng): an element is dropped or scaled as base/dropout_random.h says. The gradient is the same op on dy:
// nothing is saved. With `matrix`, (rows, columns), the numbers are those of random_uniform with it.

#include "ops/dropout.h"

#include "base/dropout_random.h"
#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/generate.h"
#include "ops/pointwise.h"
#include "ops/sharding_rules.h"
#include "ops/uniform_numbers.h"

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"matrix", false}, {"p"}, {"place", false}, {kRandomStream}};

ValueTypes infer(const NodeSpec& spec) {
  double p = spec.attrs.get_double("p");
  if (p < 0 || p >= 1) user_error("[dropout] expected a probability in [0, 1), got {}", p);
  check_numbers(spec, spec.inputs[1], spec.inputs[0].shape);
  return {spec.inputs[0]};
}

// The probability that is meant by p.
double chance(double p) { return double(dropout_threshold(p)) / kDropoutRange; }

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  UniformNumbers uniform(node.attrs, *in[1]);
  double p = node.attrs.get_double("p"), factor = dropout_factor(p);
  for (int64_t i = 0; i < out[0].size(); ++i) out[0][i] = uniform(i) < chance(p) ? 0 : (*in[0])[i] * factor;
}

ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  double p = node.attrs.get_double("p");
  Attrs random{{"shape", g.shape(in[0])}, {kRandomStream, node.attrs.get_int(kRandomStream)}};
  for (const char* name : {"matrix", "place"})
    if (const Attr* attr = node.attrs.find(name)) random.set(name, *attr);
  ValueId u = g.add1(op::random_uniform, {in[1]}, std::move(random));
  ValueId dropped = less(g, u, constant(g, chance(p)));
  ValueId kept = mul(g, in[0], constant(g, dropout_factor(p)));
  return {cast(g, select(g, dropped, constant(g, 0), kept), g.type(in[0]).dtype)};
}

ValueIds gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  return {g.add1(op::dropout, {dy[0], node.inputs[1]}, node.attrs), kNoValue};
}

ShardingRule sharding(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule;
  rule.outputs = {numbered_factors(rule, spec.attrs, outputs[0].shape)};
  rule.inputs = {rule.outputs[0], whole_factors(rule, spec.inputs[1].shape)};
  return rule;
}
ValueIds number(GraphBuilder& g, const Node& part, std::span<const ValueId> in, std::span<const PlacedCut> cuts) {
  Attrs attrs = part.attrs;
  ValueId rng = place_share(g, attrs, in[1], g.shape(in[0]), cuts);
  return {g.add1(op::dropout, {in[0], rng}, std::move(attrs))};
}

// A comparison and a product beside the draw.
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = default_cost(spec, outputs, 2);
  cost.draws = double(num_elements(outputs[0].shape));
  return cost;
}

}  // namespace

namespace op {
constinit const OpDef dropout = {.name = "dropout",
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .attrs = kAttrs,
                                 .infer = infer,
                                 .gradient = gradient,
                                 .reference = reference,
                                 .decompose = decompose,
                                 .cost = cost,
                                 .fusion = Fusion::kComposite,
                                 .sharding = {.rule = sharding, .number = number}};
}  // namespace op

ValueId dropout(GraphBuilder& g, ValueId x, ValueId rng, double p, int64_t random_stream) {
  if (p == 0) return x;
  return g.add1(op::dropout, {x, rng}, {{"p", p}, {kRandomStream, random_stream}});
}

ValueId dropout_of_matrices(GraphBuilder& g, ValueId x, ValueId rng, double p, int64_t random_stream,
                            std::vector<int64_t> place) {
  const Shape& shape = g.shape(x);
  Attrs attrs{{"matrix", Shape(shape.end() - 2, shape.end())}, {"p", p}, {kRandomStream, random_stream}};
  if (!place.empty()) attrs.set("place", place_of_elements(std::move(place), shape.end()[-2] * shape.back()));
  return g.add1(op::dropout, {x, rng}, std::move(attrs));
}

}  // namespace tokamak
