// adamw: one tensor's update (Loshchilov & Hutter, "Decoupled weight decay regularization", 2019):
//   g = grad * scale; m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2
//   param = param (1 - lr decay) - lr (m / (1-b1^step)) / (sqrt(v / (1-b2^step)) + eps)
// A scale of 0 means "skip this update": param, m and v are left as they are, whatever the gradient holds (loss scaling
// asks for it when a gradient overflowed to infinity or NaN).
// adamw(param, grad, m, v, lr, scale, step) -> param, m, v. multi_adamw does the same for many tensors in one kernel:
// multi_adamw(lr, scale, step, param0, grad0, m0, v0, param1, ...) -> param0, m0, v0, param1, ...
// grad may be of any float type, and each tensor's of another; m and v are f32, or both bf16, of all tensors; all
// others are f32. What bf16 keeps of m and v is rounded by chance, as rounding to the nearest would hold v where a step
// changes it by less than half of its last bit, as with beta2 = 0.999.

#include "ops/adamw.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/generate.h"
#include "ops/many_tensors.h"
#include "ops/pointwise.h"
#include "ops/scalar_math.h"
#include "ops/sharding_rules.h"

#include <cmath>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"beta1"}, {"beta2"}, {"decay"}, {"eps"}};
// decayed: per tensor 1 or 0, whether `decay` applies to it.
constexpr AttrDef kMultiAttrs[] = {{"beta1"}, {"beta2"}, {"decay"}, {"decayed"}, {"eps"}};
constexpr std::string_view kNoGradient = "the update is the end of the step";

void require_tensor(const NodeSpec& spec, size_t first) {
  for (size_t i = first + 1; i < first + 4; ++i)
    if (spec.inputs[i].shape != spec.inputs[first].shape)
      user_error("[{}] expected param, grad, m and v of one shape, got {} and {}", spec.op.name,
                 to_string(spec.inputs[first]), to_string(spec.inputs[i]));
  if (spec.inputs[first].dtype != DType::kF32)
    user_error("[{}] expected param in f32, got {}", spec.op.name, to_string(spec.inputs[first]));
  for (size_t i : {first + 2, first + 3})
    if (spec.inputs[i].dtype != DType::kF32 && spec.inputs[i].dtype != DType::kBF16)
      user_error("[{}] expected m and v in f32 or bf16, got {}", spec.op.name, to_string(spec.inputs[i]));
  if (spec.inputs[first + 2].dtype != spec.inputs[first + 3].dtype)
    user_error("[{}] expected m and v of one type, got {} and {}", spec.op.name, to_string(spec.inputs[first + 2]),
               to_string(spec.inputs[first + 3]));
  if (!is_float(spec.inputs[first + 1].dtype))
    user_error("[{}] expected a float gradient, got {}", spec.op.name, to_string(spec.inputs[first + 1]));
}

ValueTypes infer(const NodeSpec& spec) {
  require_tensor(spec, 0);
  return {spec.inputs[0], spec.inputs[2], spec.inputs[3]};
}

struct Scalars {
  double lr, scale, step, beta1, beta2, eps, decay;
};

Scalars scalars(const Attrs& attrs, const HostTensor& lr, const HostTensor& scale, const HostTensor& step) {
  return {lr[0],
          scale[0],
          step[0],
          attrs.get_double("beta1"),
          attrs.get_double("beta2"),
          attrs.get_double("eps"),
          attrs.get_double("decay")};
}

double as_kept(DType dtype, double x, double step) {
  return dtype == DType::kBF16 ? scalar::stochastic_bf16(x, step) : x;
}

void update(const Scalars& s, const HostTensor* const* in, HostTensor* out) {
  if (s.scale == 0) {
    for (size_t part : {0, 1, 2}) out[part].data = in[part == 0 ? 0 : part + 1]->data;
    return;
  }
  double c1 = 1 - std::pow(s.beta1, s.step), c2 = 1 - std::pow(s.beta2, s.step);
  for (int64_t i = 0; i < in[0]->size(); ++i) {
    double g = (*in[1])[i] * s.scale;
    double m = s.beta1 * (*in[2])[i] + (1 - s.beta1) * g;
    double v = s.beta2 * (*in[3])[i] + (1 - s.beta2) * g * g;
    out[0][i] = (*in[0])[i] * (1 - s.lr * s.decay) - s.lr * (m / c1) / (std::sqrt(v / c2) + s.eps);
    out[1][i] = as_kept(out[1].type.dtype, m, s.step);
    out[2][i] = as_kept(out[2].type.dtype, v, s.step);
  }
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  update(scalars(node.attrs, *in[4], *in[5], *in[6]), in.data(), out.data());
}

ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  double beta1 = node.attrs.get_double("beta1"), beta2 = node.attrs.get_double("beta2");
  ValueId one = constant(g, 1), lr = in[4], step = in[6];
  ValueId grad = mul(g, in[1], in[5]);
  ValueId m = add(g, mul(g, in[2], constant(g, beta1)), mul(g, grad, constant(g, 1 - beta1)));
  ValueId v = add(g, mul(g, in[3], constant(g, beta2)), mul(g, mul(g, grad, grad), constant(g, 1 - beta2)));
  ValueId c1 = sub(g, one, pow(g, constant(g, beta1), step)), c2 = sub(g, one, pow(g, constant(g, beta2), step));
  // lr / c1 and 1 / sqrt(c2) are scalars, computed once a tile.
  ValueId root = mul(g, sqrt(g, v), rsqrt(g, c2));
  ValueId change = div(g, mul(g, m, div(g, lr, c1)), add(g, root, constant(g, node.attrs.get_double("eps"))));
  ValueId kept = sub(g, one, mul(g, lr, constant(g, node.attrs.get_double("decay"))));
  ValueId skip = equal(g, in[5], constant(g, 0)), param = sub(g, mul(g, in[0], kept), change);
  if (g.type(in[2]).dtype == DType::kBF16) m = stochastic_bf16(g, m, step), v = stochastic_bf16(g, v, step);
  auto unless_skipped = [&](ValueId before, ValueId after) {
    return cast(g, select(g, skip, before, after), g.type(before).dtype);  // `skip` is f32
  };
  return {unless_skipped(in[0], param), unless_skipped(in[2], m), unless_skipped(in[3], v)};
}

Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) { return default_cost(spec, outputs, 14); }

ValueTypes infer_multi(const NodeSpec& spec) {
  size_t tensors = spec.attrs.get_ints("decayed").size();
  if (spec.inputs.size() != 3 + 4 * tensors)
    user_error("[multi_adamw] expected {} inputs for {} tensors, got {}", 3 + 4 * tensors, tensors, spec.inputs.size());
  ValueTypes types;
  for (size_t i = 3; i < spec.inputs.size(); i += 4) {
    require_tensor(spec, i);
    if (spec.inputs[i + 2].dtype != spec.inputs[5].dtype)
      user_error("[multi_adamw] expected m of all tensors of one type, got {} and {}", to_string(spec.inputs[5]),
                 to_string(spec.inputs[i + 2]));
    for (size_t part : {i, i + 2, i + 3}) types.push_back(spec.inputs[part]);
  }
  return types;
}

void multi_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  for (size_t t = 0; t < node.attrs.get_ints("decayed").size(); ++t)
    update(scalars(adamw_attrs(node, t), *in[0], *in[1], *in[2]), &in[3 + 4 * t], &out[3 * t]);
}

ValueIds multi_decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  ValueIds outputs;
  for (size_t t = 0; t < node.attrs.get_ints("decayed").size(); ++t) {
    const ValueId* tensor = &in[3 + 4 * t];
    auto updated =
        g.add(op::adamw, {tensor[0], tensor[1], tensor[2], tensor[3], in[0], in[1], in[2]}, adamw_attrs(node, t));
    outputs.insert(outputs.end(), updated.begin(), updated.end());
  }
  return outputs;
}

Cost multi_cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = default_cost(spec, outputs);
  cost.flops = 0;
  for (size_t i = 3; i < spec.inputs.size(); i += 4) cost.flops += 14 * double(num_elements(spec.inputs[i].shape));
  return cost;
}

}  // namespace

namespace op {
constinit const OpDef adamw = {.name = "adamw",
                               .min_inputs = 7,
                               .max_inputs = 7,
                               .attrs = kAttrs,
                               .infer = infer,
                               .no_gradient = kNoGradient,
                               .reference = reference,
                               .decompose = decompose,
                               .cost = cost,
                               .autocast = Autocast::kFull,
                               .fusion = Fusion::kComposite,
                               .sharding = {.rule = elementwise_rule},
                               .in_place = [](const Node&, int output) { return output == 0 ? 0 : output + 1; }};
constinit const OpDef multi_adamw = of_many_tensors({
    .name = "multi_adamw",
    .min_inputs = 3,
    .attrs = kMultiAttrs,
    .infer = infer_multi,
    .no_gradient = kNoGradient,
    .reference = multi_reference,
    .decompose = multi_decompose,
    .cost = multi_cost,
    .in_place = [](const Node&, int output) { return 3 + output / 3 * 4 + (output % 3 == 0 ? 0 : output % 3 + 1); },
});
}  // namespace op

Attrs adamw_attrs(const Node& multi, size_t tensor) {
  bool decays = multi.attrs.get_ints("decayed")[tensor] != 0;
  return {{"beta1", multi.attrs.get_double("beta1")},
          {"beta2", multi.attrs.get_double("beta2")},
          {"decay", decays ? multi.attrs.get_double("decay") : 0.0},
          {"eps", multi.attrs.get_double("eps")}};
}

}  // namespace tokamak
