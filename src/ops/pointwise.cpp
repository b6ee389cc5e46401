// The pointwise ops: one record, one gradient, one builder each.
#include "ops/pointwise.h"

#include "ops/float8.h"
#include "ops/generate.h"
#include "ops/interpret.h"
#include "ops/pointwise_op.h"
#include "ops/scalar_math.h"
#include "ops/sharding_rules.h"

namespace tokamak {
namespace {

using Grads = ValueIds;
using OutGrads = std::span<const ValueId>;

ValueId like(GraphBuilder& g, ValueId grad, ValueId input) { return sum_to_shape(g, grad, g.shape(input)); }

Grads add_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  return {like(g, dy[0], n.inputs[0]), like(g, dy[0], n.inputs[1])};
}
Grads sub_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  return {like(g, dy[0], n.inputs[0]), neg(g, like(g, dy[0], n.inputs[1]))};
}
Grads mul_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  return {like(g, mul(g, dy[0], n.inputs[1]), n.inputs[0]), like(g, mul(g, dy[0], n.inputs[0]), n.inputs[1])};
}
Grads div_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  ValueId da = div(g, dy[0], n.inputs[1]);
  return {like(g, da, n.inputs[0]), like(g, neg(g, mul(g, da, n.outputs[0])), n.inputs[1])};
}
// Ties give the whole gradient to the first operand.
Grads maximum_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  ValueId second = less(g, n.inputs[0], n.inputs[1]), zero = constant(g, 0);
  return {like(g, select(g, second, zero, dy[0]), n.inputs[0]), like(g, mul(g, second, dy[0]), n.inputs[1])};
}
Grads minimum_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  ValueId second = less(g, n.inputs[1], n.inputs[0]), zero = constant(g, 0);
  return {like(g, select(g, second, zero, dy[0]), n.inputs[0]), like(g, mul(g, second, dy[0]), n.inputs[1])};
}
// d(a^b) = b a^(b-1) da + a^b log(a) db
Grads pow_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  ValueId a = n.inputs[0], b = n.inputs[1];
  ValueId da = mul(g, mul(g, dy[0], b), pow(g, a, sub(g, b, constant(g, 1))));
  ValueId db = mul(g, mul(g, dy[0], n.outputs[0]), log(g, a));
  return {like(g, da, a), like(g, db, b)};
}
Grads select_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  ValueId zero = constant(g, 0);
  return {kNoValue, like(g, select(g, n.inputs[0], dy[0], zero), n.inputs[1]),
          like(g, select(g, n.inputs[0], zero, dy[0]), n.inputs[2])};
}
Grads neg_gradient(GraphBuilder& g, const Node&, OutGrads dy) { return {neg(g, dy[0])}; }
Grads exp_gradient(GraphBuilder& g, const Node& n, OutGrads dy) { return {mul(g, dy[0], n.outputs[0])}; }
Grads log_gradient(GraphBuilder& g, const Node& n, OutGrads dy) { return {div(g, dy[0], n.inputs[0])}; }
Grads tanh_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  return {mul(g, dy[0], sub(g, constant(g, 1), mul(g, n.outputs[0], n.outputs[0])))};
}
Grads sqrt_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  return {div(g, mul(g, dy[0], constant(g, 0.5)), n.outputs[0])};
}
Grads rsqrt_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  ValueId y = n.outputs[0];
  return {mul(g, mul(g, dy[0], constant(g, -0.5)), mul(g, y, mul(g, y, y)))};
}
Grads gelu_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  return {g.add1(op::gelu_grad, {n.inputs[0], dy[0]})};
}
Grads silu_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  return {g.add1(op::silu_grad, {n.inputs[0], dy[0]})};
}
Grads relu2_gradient(GraphBuilder& g, const Node& n, OutGrads dy) {
  return {g.add1(op::relu2_grad, {n.inputs[0], dy[0]})};
}

DType cast_target(const Attrs& attrs) { return parse_dtype(attrs.get_string("to")); }

ValueTypes infer_cast(const NodeSpec& spec) { return {{cast_target(spec.attrs), spec.inputs[0].shape}}; }

Grads cast_gradient(GraphBuilder& g, const Node& n, OutGrads dy) { return {cast(g, dy[0], g.type(n.inputs[0]).dtype)}; }

float round_f16(float x) { return float(_Float16(x)); }
float round_e4m3(float x) { return float(round_float8(DType::kF8E4M3, x)); }
float round_e5m2(float x) { return float(round_float8(DType::kF8E5M2, x)); }

void cast_tile(const Node& node, std::span<const TileOperand> in, int64_t first, int64_t n, float* out) {
  DType to = cast_target(node.attrs);
  if (to == DType::kBF16) return detail::tile1<scalar::round_bf16>(node, in, first, n, out);
  if (to == DType::kF16) return detail::tile1<round_f16>(node, in, first, n, out);
  if (to == DType::kF8E4M3) return detail::tile1<round_e4m3>(node, in, first, n, out);
  if (to == DType::kF8E5M2) return detail::tile1<round_e5m2>(node, in, first, n, out);
  if (to == DType::kI32) return detail::tile1<scalar::cast_i32<float>>(node, in, first, n, out);
  const float* a = in[0].data;
  for (int64_t i = 0; i < n; ++i) out[i] = a[in[0].uniform ? 0 : i];
}

void cast_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  DType to = cast_target(node.attrs);
  for (int64_t i = 0; i < out[0].size(); ++i) {
    double x = (*in[0])[i];
    out[0][i] = to == DType::kI32 ? scalar::cast_i32(x) : round_to(to, x);
  }
}

constexpr AttrDef kCastAttrs[] = {{"to"}};

constexpr OpDef undifferentiable(OpDef def, std::string_view why) {
  def.no_gradient = why;
  return def;
}

constexpr OpDef ruled(OpDef def, decltype(Sharding::rule) rule) {
  def.sharding.rule = rule;
  return def;
}

}  // namespace

namespace op {
#define TOKAMAK_SCALAR(f) scalar::f<float>, scalar::f<double>
constinit const OpDef add = ruled(pointwise2<TOKAMAK_SCALAR(add)>("add", "add", add_gradient), linear_rule);
constinit const OpDef sub = ruled(pointwise2<TOKAMAK_SCALAR(sub)>("sub", "sub", sub_gradient), linear_rule);
constinit const OpDef mul = ruled(pointwise2<TOKAMAK_SCALAR(mul)>("mul", "mul", mul_gradient), multilinear_rule);
constinit const OpDef div = ruled(pointwise2<TOKAMAK_SCALAR(div)>("div", "div", div_gradient), linear_in_first_rule);
constinit const OpDef maximum = pointwise2<TOKAMAK_SCALAR(maximum)>("maximum", "maximum", maximum_gradient);
constinit const OpDef minimum = pointwise2<TOKAMAK_SCALAR(minimum)>("minimum", "minimum", minimum_gradient);
constinit const OpDef pow = pointwise2<TOKAMAK_SCALAR(pow)>("pow", "pow", pow_gradient);
constinit const OpDef less =
    undifferentiable(pointwise2<TOKAMAK_SCALAR(less)>("less", "less", nullptr), "piecewise constant");
constinit const OpDef equal =
    undifferentiable(pointwise2<TOKAMAK_SCALAR(equal)>("equal", "equal", nullptr), "piecewise constant");
constinit const OpDef select = pointwise3<TOKAMAK_SCALAR(select)>("select", "select", select_gradient);
constinit const OpDef neg = ruled(pointwise1<TOKAMAK_SCALAR(neg)>("neg", "neg", neg_gradient), linear_rule);
constinit const OpDef exp = pointwise1<TOKAMAK_SCALAR(exponential)>("exp", "exponential", exp_gradient);
constinit const OpDef log = pointwise1<TOKAMAK_SCALAR(logarithm)>("log", "logarithm", log_gradient);
constinit const OpDef tanh =
    pointwise1<TOKAMAK_SCALAR(hyperbolic_tangent)>("tanh", "hyperbolic_tangent", tanh_gradient);
constinit const OpDef sqrt = pointwise1<TOKAMAK_SCALAR(square_root)>("sqrt", "square_root", sqrt_gradient);
constinit const OpDef rsqrt = pointwise1<TOKAMAK_SCALAR(reciprocal_root)>("rsqrt", "reciprocal_root", rsqrt_gradient);
constinit const OpDef gelu = pointwise1<TOKAMAK_SCALAR(gelu)>("gelu", "gelu", gelu_gradient);
constinit const OpDef gelu_grad = undifferentiable(
    pointwise2<TOKAMAK_SCALAR(gelu_grad)>("gelu_grad", "gelu_grad", nullptr), "second derivatives are not needed");
constinit const OpDef silu = pointwise1<TOKAMAK_SCALAR(silu)>("silu", "silu", silu_gradient);
constinit const OpDef silu_grad = undifferentiable(
    pointwise2<TOKAMAK_SCALAR(silu_grad)>("silu_grad", "silu_grad", nullptr), "second derivatives are not needed");
constinit const OpDef relu2 = pointwise1<TOKAMAK_SCALAR(relu2)>("relu2", "relu2", relu2_gradient);
constinit const OpDef relu2_grad = undifferentiable(
    pointwise2<TOKAMAK_SCALAR(relu2_grad)>("relu2_grad", "relu2_grad", nullptr), "second derivatives are not needed");
#undef TOKAMAK_SCALAR
constinit const OpDef stochastic_bf16 = undifferentiable(
    pointwise2<scalar::stochastic_bf16, scalar::stochastic_bf16>("stochastic_bf16", "stochastic_bf16", nullptr),
    "piecewise constant");
constinit const OpDef cast = {.name = "cast",
                              .attrs = kCastAttrs,
                              .infer = infer_cast,
                              .gradient = cast_gradient,
                              .reference = cast_reference,
                              .fusion = Fusion::kPointwise,
                              .scalar = "cast",
                              .tile = cast_tile,
                              .in_place = detail::in_place_any};
}  // namespace op

ValueId add(GraphBuilder& g, ValueId a, ValueId b) { return g.add1(op::add, {a, b}); }
ValueId sub(GraphBuilder& g, ValueId a, ValueId b) { return g.add1(op::sub, {a, b}); }
ValueId mul(GraphBuilder& g, ValueId a, ValueId b) { return g.add1(op::mul, {a, b}); }
ValueId div(GraphBuilder& g, ValueId a, ValueId b) { return g.add1(op::div, {a, b}); }
ValueId maximum(GraphBuilder& g, ValueId a, ValueId b) { return g.add1(op::maximum, {a, b}); }
ValueId minimum(GraphBuilder& g, ValueId a, ValueId b) { return g.add1(op::minimum, {a, b}); }
ValueId pow(GraphBuilder& g, ValueId a, ValueId b) { return g.add1(op::pow, {a, b}); }
ValueId less(GraphBuilder& g, ValueId a, ValueId b) { return g.add1(op::less, {a, b}); }
ValueId equal(GraphBuilder& g, ValueId a, ValueId b) { return g.add1(op::equal, {a, b}); }
ValueId select(GraphBuilder& g, ValueId c, ValueId a, ValueId b) { return g.add1(op::select, {c, a, b}); }
ValueId neg(GraphBuilder& g, ValueId a) { return g.add1(op::neg, {a}); }
ValueId exp(GraphBuilder& g, ValueId a) { return g.add1(op::exp, {a}); }
ValueId log(GraphBuilder& g, ValueId a) { return g.add1(op::log, {a}); }
ValueId tanh(GraphBuilder& g, ValueId a) { return g.add1(op::tanh, {a}); }
ValueId sqrt(GraphBuilder& g, ValueId a) { return g.add1(op::sqrt, {a}); }
ValueId rsqrt(GraphBuilder& g, ValueId a) { return g.add1(op::rsqrt, {a}); }
ValueId gelu(GraphBuilder& g, ValueId a) { return g.add1(op::gelu, {a}); }
ValueId silu(GraphBuilder& g, ValueId a) { return g.add1(op::silu, {a}); }
ValueId relu2(GraphBuilder& g, ValueId a) { return g.add1(op::relu2, {a}); }

ValueId cast(GraphBuilder& g, ValueId a, DType to) {
  if (g.type(a).dtype == to) return a;
  return g.add1(op::cast, {a}, {{"to", std::string(dtype_name(to))}});
}

ValueId stochastic_bf16(GraphBuilder& g, ValueId a, ValueId salt) {
  return cast(g, g.add1(op::stochastic_bf16, {a, salt}), DType::kBF16);
}

}  // namespace tokamak
