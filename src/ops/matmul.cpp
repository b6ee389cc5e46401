// matmul: op(a) (..., M, K) times op(b) (K, N) or (..., K, N) -> (..., M, N), in the formats of ops/matmul_formats.h.
// matmul(a, b, scale_a, scale_b): that times both scales, f32[] each.

#include "ops/matmul.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/matmul_dims.h"
#include "ops/matmul_formats.h"
#include "ops/movement.h"
#include "ops/sharding_rules.h"

namespace tokamak {

MatmulDims matmul_dims(const NodeSpec& spec) {
  const Shape &a = spec.inputs[0].shape, &b = spec.inputs[1].shape;
  bool ta = spec.attrs.get_bool("trans_a"), tb = spec.attrs.get_bool("trans_b");
  auto fail = [&](std::string_view expected) {
    user_error("[matmul] expected {}, got {}{} times {}{}", expected, to_string(a), ta ? " transposed" : "",
               to_string(b), tb ? " transposed" : "");
  };
  if (a.size() < 2 || b.size() < 2) fail("two dims or more");
  MatmulDims d;
  size_t ra = a.size(), rb = b.size();
  d.m = a[ra - (ta ? 1 : 2)];
  d.k = a[ra - (ta ? 2 : 1)];
  d.n = b[rb - (tb ? 2 : 1)];
  if (b[rb - (tb ? 1 : 2)] != d.k) fail("the inner dims to be equal");
  d.output = Shape(a.begin(), a.end() - 2);
  if (rb == 2) {
    if (ra > 2 && ta) fail("a batch of b as well when a is a transposed batch");
    for (size_t i = 0; i + 2 < ra; ++i) d.m *= a[i];
  } else {
    if (ra != rb || !std::equal(a.begin(), a.end() - 2, b.begin())) fail("equal batch dims");
    for (size_t i = 0; i + 2 < ra; ++i) d.batch *= a[i];
  }
  d.output.push_back(a[ra - (ta ? 1 : 2)]);
  d.output.push_back(d.n);
  return d;
}

namespace {

constexpr AttrDef kMatmulAttrs[] = {
    {"accumulator", false}, {"result", false}, {"tf32", false}, {"trans_a"}, {"trans_b"}};

void check_scales(const NodeSpec& spec) {
  if (spec.inputs.size() == 3) user_error("[matmul] expected a scale of each operand or none, got one");
  for (size_t i = 2; i < spec.inputs.size(); ++i)
    if (spec.inputs[i] != ValueType{DType::kF32, {}})
      user_error("[matmul] expected scales that are f32[], got {}", to_string(spec.inputs[i]));
}

ValueTypes infer(const NodeSpec& spec) {
  MatmulDims dims = matmul_dims(spec);
  check_scales(spec);
  return {{matmul_formats(spec).result, dims.output}};
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  const HostTensor &a = *in[0], &b = *in[1];
  MatmulDims d = matmul_dims({*node.op, {a.type, b.type}, node.attrs});
  bool ta = node.attrs.get_bool("trans_a"), tb = node.attrs.get_bool("trans_b");
  double scale = in.size() > 2 ? (*in[2])[0] * (*in[3])[0] : 1;
  for (int64_t s = 0; s < d.batch; ++s) {
    const double *pa = &a.data[size_t(s * d.m * d.k)], *pb = &b.data[size_t(s * d.k * d.n)];
    for (int64_t i = 0; i < d.m; ++i)
      for (int64_t j = 0; j < d.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < d.k; ++k)
          sum += pa[ta ? k * d.m + i : i * d.k + k] * pb[tb ? j * d.k + k : k * d.n + j];
        out[0][(s * d.m + i) * d.n + j] = scale * sum;
      }
  }
}

// Of y = op(a) op(b): da = dy op(b)^T and db = op(a)^T dy, each transposed once more where the operand was.
ValueIds gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> output_grads) {
  TOKAMAK_CHECK(g.graph().dtype(node.inputs[0]) == g.graph().dtype(node.outputs[0]) && node.inputs.size() == 2,
                "a product's own formats are chosen after differentiation");
  ValueId a = node.inputs[0], b = node.inputs[1], dy = output_grads[0];
  bool ta = node.attrs.get_bool("trans_a"), tb = node.attrs.get_bool("trans_b");
  ValueId da = ta ? matmul(g, b, dy, tb, true) : matmul(g, dy, b, false, !tb);
  if (g.shape(b).size() == 2 && g.shape(a).size() > 2) {
    a = reshape(g, a, {-1, g.shape(a).back()});
    dy = reshape(g, dy, {-1, g.shape(dy).back()});
  }
  ValueId db = tb ? matmul(g, dy, a, true, ta) : matmul(g, a, dy, !ta, false);
  return {da, db};
}

// The batch and m apart, n apart, k summed.
ShardingRule sharding(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule;
  const Shape &a = spec.inputs[0].shape, &b = spec.inputs[1].shape;
  bool ta = spec.attrs.get_bool("trans_a"), tb = spec.attrs.get_bool("trans_b");
  OperandFactors y = factors_of(rule, outputs[0].shape);
  DimFactors m = y[y.size() - 2], n = y.back(), k = {rule.summed(a[a.size() - (ta ? 2 : 1)])};
  OperandFactors batch(y.begin(), y.end() - 2), x = batch, w = b.size() == 2 ? OperandFactors{} : batch;
  x.insert(x.end(), {ta ? k : m, ta ? m : k});
  w.insert(w.end(), {tb ? n : k, tb ? k : n});
  rule.inputs = {std::move(x), std::move(w)};
  rule.inputs.resize(spec.inputs.size());  // scales have no dims
  rule.outputs = {std::move(y)};
  return rule;
}

Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  MatmulDims d = matmul_dims(spec);
  Cost cost = default_cost(spec, outputs);
  cost.flops = 2.0 * double(d.batch) * double(d.m) * double(d.n) * double(d.k);
  return cost;
}

}  // namespace

namespace op {
constinit const OpDef matmul = {.name = "matmul",
                                .min_inputs = 2,
                                .max_inputs = 4,
                                .attrs = kMatmulAttrs,
                                .infer = infer,
                                .gradient = gradient,
                                .reference = reference,
                                .cost = cost,
                                .autocast = Autocast::kLow,
                                .low_inputs = 0b0011,  // not the scales
                                .sharding = {.rule = sharding}};
}  // namespace op

ValueId matmul(GraphBuilder& g, ValueId a, ValueId b, bool trans_a, bool trans_b) {
  return g.add1(op::matmul, {a, b}, {{"trans_a", trans_a}, {"trans_b", trans_b}});
}

}  // namespace tokamak
