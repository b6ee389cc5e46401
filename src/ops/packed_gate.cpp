// packed_gate(packed) -> y and its gradient, packed_gate_grad(dy, packed) -> dpacked. Legend: H columns of y (..., H);
// a row of packed (..., 2 H) is gate and then up.
#include "ops/packed_gate.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/scalar_math.h"
#include "ops/sharding_rules.h"

namespace tokamak {
namespace {

using Tensors = std::span<const HostTensor* const>;

Shape half_of(Shape packed) {
  packed.back() /= 2;
  return packed;
}

void require_packed(const NodeSpec& spec, const ValueType& packed) {
  if (is_float(packed.dtype) && !packed.shape.empty() && packed.shape.back() % 2 == 0) return;
  user_error("[{}] expected floats with gate and up, of as many columns, in each row, got {}", spec.op.name,
             to_string(packed));
}

ValueTypes infer(const NodeSpec& spec) {
  const ValueType& packed = spec.inputs[0];
  require_packed(spec, packed);
  return {{packed.dtype, half_of(packed.shape)}};
}

ValueTypes infer_grad(const NodeSpec& spec) {
  const ValueType &dy = spec.inputs[0], &packed = spec.inputs[1];
  require_packed(spec, packed);
  if (dy != ValueType{packed.dtype, half_of(packed.shape)})
    user_error("[packed_gate_grad] expected the gradient of half the columns of {}, got {}", to_string(packed),
               to_string(dy));
  return {packed};
}

// Of each element of y: its place there, the gate's and that of up in `packed`.
template <typename Do>
void for_elements(int64_t H, int64_t size, const Do& act) {
  for (int64_t i = 0; i < size; ++i) {
    int64_t gate = i / H * 2 * H + i % H;
    act(i, gate, gate + H);
  }
}

void reference(const Node&, Tensors in, std::span<HostTensor> out) {
  const HostTensor& packed = *in[0];
  for_elements(out[0].shape().back(), out[0].size(),
               [&](int64_t i, int64_t gate, int64_t up) { out[0][i] = scalar::silu(packed[gate]) * packed[up]; });
}

void grad_reference(const Node&, Tensors in, std::span<HostTensor> out) {
  const HostTensor &dy = *in[0], &packed = *in[1];
  for_elements(dy.shape().back(), dy.size(), [&](int64_t i, int64_t gate, int64_t up) {
    out[0][gate] = scalar::silu_grad(packed[gate], dy[i] * packed[up]);
    out[0][up] = dy[i] * scalar::silu(packed[gate]);
  });
}

struct Parts {
  ValueId gate, up;
};
Parts parts_of(GraphBuilder& g, ValueId packed) {
  const Shape shape = g.shape(packed);
  int64_t dim = int64_t(shape.size()) - 1, H = shape.back() / 2;
  return {slice(g, packed, dim, 0, H), slice(g, packed, dim, H, H)};
}

ValueIds decompose(GraphBuilder& g, const Node&, std::span<const ValueId> in) {
  Parts parts = parts_of(g, in[0]);
  return {mul(g, silu(g, parts.gate), parts.up)};
}

ValueIds grad_decompose(GraphBuilder& g, const Node&, std::span<const ValueId> in) {
  Parts parts = parts_of(g, in[1]);
  ValueId dgate = g.add1(op::silu_grad, {parts.gate, mul(g, in[0], parts.up)});
  return {concat(g, {dgate, mul(g, in[0], silu(g, parts.gate))}, int64_t(g.shape(in[0]).size()) - 1)};
}

ValueIds gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  return {packed_gate_grad(g, dy[0], node.inputs[0])};
}

// A part of both halves' columns is such a matrix again.
struct Factors {
  ShardingRule rule;
  OperandFactors half, packed;
};
Factors factors_of_half(const Shape& half) {
  Factors f;
  f.half = factors_of(f.rule, half);
  f.packed = f.half;
  f.packed.back() = {f.rule.whole(2), f.half.back()[0]};
  return f;
}
ShardingRule sharding(const NodeSpec&, std::span<const ValueType> outputs) {
  Factors f = factors_of_half(outputs[0].shape);
  f.rule.inputs = {f.packed};
  f.rule.outputs = {f.half};
  return f.rule;
}
ShardingRule grad_sharding(const NodeSpec& spec, std::span<const ValueType>) {
  Factors f = factors_of_half(spec.inputs[0].shape);
  f.rule.inputs = {f.half, f.packed};
  f.rule.outputs = {f.packed};
  f.rule.linear = {{0}};
  return f.rule;
}

// The function and a product; the same of the gradients, with the function's derivative and a product more.
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) { return default_cost(spec, outputs, 2); }

// Each element of both halves is read before it is written.
int grad_in_place(const Node&, int) { return 1; }

}  // namespace

namespace op {
constinit const OpDef packed_gate = {.name = "packed_gate",
                                     .infer = infer,
                                     .gradient = gradient,
                                     .reference = reference,
                                     .decompose = decompose,
                                     .cost = cost,
                                     .autocast = Autocast::kFull,
                                     .fusion = Fusion::kComposite,
                                     .sharding = {.rule = sharding}};
constinit const OpDef packed_gate_grad = {.name = "packed_gate_grad",
                                          .min_inputs = 2,
                                          .max_inputs = 2,
                                          .infer = infer_grad,
                                          .no_gradient = "second derivatives are not needed",
                                          .reference = grad_reference,
                                          .decompose = grad_decompose,
                                          .cost = cost,
                                          .autocast = Autocast::kFull,
                                          .fusion = Fusion::kComposite,
                                          .sharding = {.rule = grad_sharding},
                                          .in_place = grad_in_place};
}  // namespace op

ValueId packed_gate(GraphBuilder& g, ValueId packed) { return g.add1(op::packed_gate, {packed}); }

ValueId packed_gate_grad(GraphBuilder& g, ValueId dy, ValueId packed) {
  return g.add1(op::packed_gate_grad, {dy, packed});
}

}  // namespace tokamak
