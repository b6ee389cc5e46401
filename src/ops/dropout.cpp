// dropout(x, rng): an element is dropped or scaled as base/dropout_random.h says. The gradient is the same op on dy:
// nothing is saved. With `matrix`, (rows, columns), the numbers are those of random_uniform with it.

#include "ops/dropout.h"

#include "base/dropout_random.h"
#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/generate.h"
#include "ops/pointwise.h"
#include "ops/uniform_numbers.h"

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"matrix", false}, {"p"}, {"stream"}};

std::vector<ValueType> infer(const NodeSpec& spec) {
  double p = spec.attrs.get_double("p");
  if (p < 0 || p >= 1) user_error("[dropout] expected a probability in [0, 1), got {}", p);
  if (spec.inputs[1] != ValueType{DType::kI32, {2}})
    user_error("[dropout] expected rng to be i32[2] (seed, step), got {}", to_string(spec.inputs[1]));
  check_matrix(spec, spec.inputs[0].shape);
  return {spec.inputs[0]};
}

// The probability that is meant by p.
double chance(double p) { return double(dropout_threshold(p)) / kDropoutRange; }

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  UniformNumbers uniform(node.attrs, int32_t((*in[1])[0]), int32_t((*in[1])[1]));
  double p = node.attrs.get_double("p"), factor = dropout_factor(p);
  for (int64_t i = 0; i < out[0].size(); ++i) out[0][i] = uniform(i) < chance(p) ? 0 : (*in[0])[i] * factor;
}

std::vector<ValueId> decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  double p = node.attrs.get_double("p");
  Attrs random{{"shape", g.shape(in[0])}, {"stream", node.attrs.get_int("stream")}};
  if (const Attr* matrix = node.attrs.find("matrix")) random.set("matrix", *matrix);
  ValueId u = g.add1(op::random_uniform, {in[1]}, std::move(random));
  ValueId dropped = less(g, u, constant(g, chance(p)));
  ValueId kept = mul(g, in[0], constant(g, dropout_factor(p)));
  return {cast(g, select(g, dropped, constant(g, 0), kept), g.type(in[0]).dtype)};
}

std::vector<ValueId> gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  return {g.add1(op::dropout, {dy[0], node.inputs[1]}, node.attrs), kNoValue};
}

Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) { return default_cost(spec, outputs, 12); }

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
                                 .fusion = Fusion::kComposite};
}  // namespace op

ValueId dropout(GraphBuilder& g, ValueId x, ValueId rng, double p, int64_t stream) {
  if (p == 0) return x;
  return g.add1(op::dropout, {x, rng}, {{"p", p}, {"stream", stream}});
}

ValueId dropout_of_matrices(GraphBuilder& g, ValueId x, ValueId rng, double p, int64_t stream) {
  const Shape& shape = g.shape(x);
  return g.add1(op::dropout, {x, rng}, {{"matrix", Shape(shape.end() - 2, shape.end())}, {"p", p}, {"stream", stream}});
}

}  // namespace tokamak
