// rotary_qkv(q, k, v, positions) -> qkv and its gradient, rotary_qkv_grad(dqkv, positions) -> dq, dk, dv, which turns
// back and adds up what the group of a head gives. Legend: B batch, T time, H heads, K heads of keys and values, G = H
// / K, D width of a head.

#include "ops/rotary.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/packed_rotary.h"

#include <cmath>
#include <numbers>

namespace tokamak {
namespace {

using Tensors = std::span<const HostTensor* const>;

constexpr AttrDef kAttrs[] = {{"factor"}, {"head_width"}, {"high_freq"}, {"low_freq"}, {"original_context"}, {"theta"}};
constexpr AttrDef kGradAttrs[] = {{"factor"},           {"group"}, {"head_width"}, {"high_freq"}, {"low_freq"},
                                  {"original_context"}, {"theta"}};

const ValueType& positions_of(const NodeSpec& spec) { return spec.inputs.back(); }

void check_positions(const NodeSpec& spec, const RotaryDims& d) {
  const ValueType& positions = positions_of(spec);
  if (positions == ValueType{DType::kI32, {1, d.T}} || positions == ValueType{DType::kI32, {d.B, d.T}}) return;
  user_error("[{}] expected positions i32[{},{}] or i32[1,{}], got {}", spec.op.name, d.B, d.T, d.T,
             to_string(positions));
}

ValueTypes infer(const NodeSpec& spec) {
  const ValueType &q = spec.inputs[0], &k = spec.inputs[1], &v = spec.inputs[2];
  int64_t D = spec.attrs.get_int("head_width");
  bool heads = D >= 2 && D % 2 == 0 && q.shape.size() == 3 && k.shape.size() == 3 && q.shape[2] % D == 0 &&
               k.shape[2] % D == 0 && k.shape[2] > 0;
  if (!heads)
    user_error("[rotary_qkv] expected q and k (B, T, heads x {}) of heads of an even width, got {} and {}", D,
               to_string(q), to_string(k));
  bool fits = k == v && q.dtype == k.dtype && q.shape[0] == k.shape[0] && q.shape[1] == k.shape[1] &&
              q.shape[2] % k.shape[2] == 0;
  if (!fits)
    user_error("[rotary_qkv] expected k and v alike, with a number of heads that divides that of q {}, got {} and {}",
               to_string(q), to_string(k), to_string(v));
  check_positions(spec, rotary_dims(spec));
  return {{q.dtype, {q.shape[0], q.shape[1], 3 * q.shape[2]}}};
}

ValueTypes infer_grad(const NodeSpec& spec) {
  const ValueType& dqkv = spec.inputs[0];
  int64_t D = spec.attrs.get_int("head_width"), group = spec.attrs.get_int("group");
  bool heads = D >= 2 && D % 2 == 0 && group >= 1 && dqkv.shape.size() == 3 && dqkv.shape[2] % (3 * group * D) == 0;
  if (!heads)
    user_error("[rotary_qkv_grad] expected dqkv (B, T, 3 x heads x {}) of groups of {} heads, got {}", D, group,
               to_string(dqkv));
  RotaryDims d = rotary_dims(spec);
  check_positions(spec, d);
  ValueType kv{dqkv.dtype, {d.B, d.T, d.K * D}};
  return {{dqkv.dtype, {d.B, d.T, d.H * D}}, kv, kv};
}

// What turns columns i and i + D/2 of a token: the cosine and the sine of its angle.
struct Turn {
  double cos, sin;
  double early(double a, double b) const { return a * cos - b * sin; }
  double late(double a, double b) const { return b * cos + a * sin; }
  Turn back() const { return {cos, -sin}; }
};
Turn turn_of(const HostTensor& positions, const RotaryDims& d, const std::vector<float>& frequencies, int64_t row,
             int64_t i) {
  auto position = float(positions[row % (d.position_rows * d.T)]);
  double angle = double(position * frequencies[size_t(i)]);
  return {std::cos(angle), std::sin(angle)};
}

void reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  const HostTensor &q = *in[0], &k = *in[1], &v = *in[2];
  RotaryDims d = rotary_dims({*node.op, {q.type, k.type, v.type, in[3]->type}, node.attrs});
  std::vector<float> frequencies = rotary_frequencies(node.attrs);
  int64_t half = d.D / 2, width = d.H * d.D;
  for (int64_t row = 0; row < d.B * d.T; ++row)
    for (int64_t h = 0; h < d.H; ++h)
      for (int64_t i = 0; i < half; ++i) {
        Turn turn = turn_of(*in[3], d, frequencies, row, i);
        int64_t from = (row * d.H + h) * d.D + i, kv = (row * d.K + h / d.group()) * d.D + i;
        int64_t to = row * 3 * width + h * d.D + i;
        out[0][to] = turn.early(q[from], q[from + half]);
        out[0][to + half] = turn.late(q[from], q[from + half]);
        out[0][to + width] = turn.early(k[kv], k[kv + half]);
        out[0][to + width + half] = turn.late(k[kv], k[kv + half]);
        out[0][to + 2 * width] = v[kv];
        out[0][to + 2 * width + half] = v[kv + half];
      }
}

void grad_reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  const HostTensor& dqkv = *in[0];
  RotaryDims d = rotary_dims({*node.op, {dqkv.type, in[1]->type}, node.attrs});
  std::vector<float> frequencies = rotary_frequencies(node.attrs);
  int64_t half = d.D / 2, width = d.H * d.D;
  for (size_t i : {1, 2}) std::fill(out[i].data.begin(), out[i].data.end(), 0.0);
  for (int64_t row = 0; row < d.B * d.T; ++row)
    for (int64_t h = 0; h < d.H; ++h)
      for (int64_t i = 0; i < half; ++i) {
        Turn back = turn_of(*in[1], d, frequencies, row, i).back();
        int64_t to = (row * d.H + h) * d.D + i, kv = (row * d.K + h / d.group()) * d.D + i;
        int64_t dq = row * 3 * width + h * d.D + i, dk = dq + width, dv = dk + width;
        out[0][to] = back.early(dqkv[dq], dqkv[dq + half]);
        out[0][to + half] = back.late(dqkv[dq], dqkv[dq + half]);
        out[1][kv] += back.early(dqkv[dk], dqkv[dk + half]);
        out[1][kv + half] += back.late(dqkv[dk], dqkv[dk + half]);
        out[2][kv] += dqkv[dv];
        out[2][kv + half] += dqkv[dv + half];
      }
}

ValueIds gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  Attrs attrs = node.attrs;
  attrs.set("group", g.shape(node.inputs[0])[2] / g.shape(node.inputs[1])[2]);
  ValueIds grads = g.add(op::rotary_qkv_grad, {dy[0], node.inputs[3]}, std::move(attrs));
  grads.push_back(kNoValue);
  return grads;
}

// Samples, time and groups apart.
struct Factors {
  ShardingRule rule;
  OperandFactors q, kv, qkv, positions;
};
Factors factors_of(const NodeSpec& spec) {
  RotaryDims d = rotary_dims(spec);
  Factors f;
  int B = f.rule.apart(d.B), T = f.rule.apart(d.T), K = f.rule.apart(d.K);
  int G = f.rule.whole(d.group()), D = f.rule.whole(d.D), three = f.rule.whole(3);
  f.q = {{B}, {T}, {K, G, D}};
  f.kv = {{B}, {T}, {K, D}};
  f.qkv = {{B}, {T}, {three, K, G, D}};
  f.positions = {d.position_rows == d.B ? DimFactors{B} : DimFactors{}, {T}};
  return f;
}
ShardingRule sharding(const NodeSpec& spec, std::span<const ValueType>) {
  Factors f = factors_of(spec);
  f.rule.inputs = {f.q, f.kv, f.kv, f.positions};
  f.rule.outputs = {f.qkv};
  f.rule.linear = {{0, 1, 2}};
  return f.rule;
}
ShardingRule grad_sharding(const NodeSpec& spec, std::span<const ValueType>) {
  Factors f = factors_of(spec);
  f.rule.inputs = {f.qkv, f.positions};
  f.rule.outputs = {f.q, f.kv, f.kv};
  f.rule.linear = {{0}};
  return f.rule;
}

// A multiplication and a sum of two of each element of q and k, which is what is read and written as well.
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) { return default_cost(spec, outputs, 3); }

}  // namespace

namespace op {
constinit const OpDef rotary_qkv = {.name = "rotary_qkv",
                                    .min_inputs = 4,
                                    .max_inputs = 4,
                                    .attrs = kAttrs,
                                    .infer = infer,
                                    .gradient = gradient,
                                    .reference = reference,
                                    .cost = cost,
                                    .sharding = {.rule = sharding}};
constinit const OpDef rotary_qkv_grad = {.name = "rotary_qkv_grad",
                                         .min_inputs = 2,
                                         .max_inputs = 2,
                                         .attrs = kGradAttrs,
                                         .infer = infer_grad,
                                         .no_gradient = "second derivatives are not needed",
                                         .reference = grad_reference,
                                         .cost = cost,
                                         .sharding = {.rule = grad_sharding}};
}  // namespace op

ValueId rotary_qkv(GraphBuilder& g, ValueId q, ValueId k, ValueId v, ValueId positions, const RotaryOptions& o) {
  return g.add1(op::rotary_qkv, {q, k, v, positions},
                {{"factor", o.factor},
                 {"head_width", o.head_width},
                 {"high_freq", o.high_freq},
                 {"low_freq", o.low_freq},
                 {"original_context", o.original_context},
                 {"theta", o.theta}});
}

RotaryDims rotary_dims(const NodeSpec& spec) {
  const Shape& first = spec.inputs[0].shape;
  int64_t D = spec.attrs.get_int("head_width"),
          rows = positions_of(spec).shape.empty() ? 0 : positions_of(spec).shape[0];
  if (&spec.op == &op::rotary_qkv) return {first[0], first[1], first[2] / D, spec.inputs[1].shape[2] / D, D, rows};
  int64_t group = spec.attrs.get_int("group");
  bool is_packed = &spec.op == &op::packed_rotary;
  int64_t H = is_packed ? first[2] / D / (group + 2) * group : first[2] / 3 / D;
  return {first[0], first[1], H, H / group, D, rows};
}

// Llama 3's rule, as Meta's report has no formula, is that of Transformers' rope type "llama3".
std::vector<float> rotary_frequencies(const Attrs& attrs) {
  int64_t D = attrs.get_int("head_width");
  double factor = attrs.get_double("factor"), low = attrs.get_double("low_freq"), high = attrs.get_double("high_freq");
  auto context = double(attrs.get_int("original_context"));
  std::vector<float> frequencies;
  for (int64_t i = 0; i < D / 2; ++i) {
    double frequency = std::pow(attrs.get_double("theta"), -2.0 * double(i) / double(D));
    double kept = 0;  // the share that is not scaled
    if (context > 0) {
      double turns = context * frequency / (2 * std::numbers::pi);
      kept = turns > high ? 1 : turns < low ? 0 : (turns - low) / (high - low);
    }
    frequencies.push_back(float(kept * frequency + (1 - kept) * frequency / factor));
  }
  return frequencies;
}

}  // namespace tokamak
