// attention_decode: causal attention of the next tokens to themselves and to all that a cache holds of those before
// them. Legend: B batch, t new tokens, Tmax places of the cache, C width, H heads, D = C / H.

#include "ops/attention_decode.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/attention_operands.h"
#include "ops/interpret.h"  // round_to
#include "ops/sharding_rules.h"

#include <cmath>
#include <limits>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"head_width"}, {"scale"}, {"tf32", false}, {"window", false}};

// attention_decode(qkv (B, t, 3C), cache (B, Tmax, 2C), position i32 (B)) -> out (B, t, C), cache
ValueTypes infer(const NodeSpec& spec) {
  AttentionDims d = attention_decode_dims(spec);
  const Shape& cache = spec.inputs[1].shape;
  if (cache.size() != 3 || cache[0] != d.B || cache[2] != 2 * d.C || cache[1] < d.T)
    user_error("[attention_decode] expected a cache ({}, {} or more, {}), got {}", d.B, d.T, 2 * d.C, to_string(cache));
  if (ValueType position{DType::kI32, {d.B}}; spec.inputs[2] != position)
    user_error("[attention_decode] expected positions {}, got {}", to_string(position), to_string(spec.inputs[2]));
  return {{spec.inputs[0].dtype, {d.B, d.T, d.C}}, spec.inputs[1]};
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  AttentionDims d = attention_decode_dims({*node.op, {in[0]->type}, node.attrs});
  HostTensor& cache = out[1];
  cache.data = in[1]->data;
  int64_t capacity = cache.shape()[1], window = attention_decode_window(node.attrs);
  auto at = [&](int64_t b, int64_t t, int64_t c) { return (b * capacity + t) * 2 * d.C + c; };
  auto q = [&](int64_t b, int64_t t, int64_t h, int64_t c) { return (*in[0])[(b * d.T + t) * 3 * d.C + h * d.D + c]; };
  auto place = [&](int64_t b, int64_t t) { return int64_t((*in[2])[b]) + t; };
  auto fits = [&](int64_t b, int64_t t) { return place(b, t) >= 0 && place(b, t) < capacity; };
  for (int64_t b = 0; b < d.B; ++b)
    for (int64_t t = 0; t < d.T; ++t)
      for (int64_t c = 0; c < 2 * d.C && fits(b, t); ++c)
        cache[at(b, place(b, t), c)] = round_to(cache.type.dtype, (*in[0])[(b * d.T + t) * 3 * d.C + d.C + c]);
  for (int64_t b = 0; b < d.B; ++b)
    for (int64_t h = 0; h < d.H; ++h)
      for (int64_t i = 0; i < d.T; ++i) {
        auto y = [&](int64_t c) -> double& { return out[0][(b * d.T + i) * d.C + h * d.D + c]; };
        if (!fits(b, i)) {
          for (int64_t c = 0; c < d.D; ++c) y(c) = std::numeric_limits<double>::quiet_NaN();
          continue;
        }
        std::vector<double> p(static_cast<size_t>(place(b, i) + 1), 0.0);
        size_t first = window > 0 && window < int64_t(p.size()) ? p.size() - size_t(window) : 0;
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (size_t j = first; j < p.size(); ++j) {
          for (int64_t c = 0; c < d.D; ++c) p[j] += q(b, i, h, c) * cache[at(b, int64_t(j), h * d.D + c)];
          top = std::max(top, p[j] *= node.attrs.get_double("scale"));
        }
        for (size_t j = first; j < p.size(); ++j) sum += p[j] = std::exp(p[j] - top);
        for (int64_t c = 0; c < d.D; ++c)
          for (size_t j = first; j < p.size(); ++j) y(c) += p[j] / sum * cache[at(b, int64_t(j), d.C + h * d.D + c)];
      }
}

// Rows and heads apart.
ShardingRule sharding(const NodeSpec& spec, std::span<const ValueType>) {
  AttentionDims d = attention_decode_dims(spec);
  ShardingRule rule;
  int B = rule.apart(d.B), H = rule.apart(d.H), D = rule.whole(d.D), three = rule.whole(3), two = rule.whole(2);
  int t = rule.whole(d.T), places = rule.whole(spec.inputs[1].shape[1]);
  OperandFactors cache = {{B}, {places}, {two, H, D}};
  rule.inputs = {{{B}, {t}, {three, H, D}}, cache, {{B}}};
  rule.outputs = {{{B}, {t}, {H, D}}, cache};
  return rule;
}

Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = default_cost(spec, {outputs.data(), 1});
  cost.flops = 2.0 * double(num_elements(spec.inputs[1].shape)) * double(spec.inputs[0].shape[1]);
  return cost;
}

}  // namespace

namespace op {
constinit const OpDef attention_decode = {.name = "attention_decode",
                                          .min_inputs = 3,
                                          .max_inputs = 3,
                                          .attrs = kAttrs,
                                          .infer = infer,
                                          .no_gradient = "only for generation",
                                          .reference = reference,
                                          .cost = cost,
                                          .autocast = Autocast::kLow,
                                          .low_inputs = 0b001,  // not the cache
                                          .sharding = {.rule = sharding},
                                          .in_place = [](const Node&, int output) { return output == 1 ? 1 : -1; }};
}  // namespace op

AttentionDims attention_decode_dims(const NodeSpec& spec) {
  const ValueType& qkv = spec.inputs[0];
  int64_t D = spec.attrs.get_int("head_width");
  if (qkv.shape.size() != 3 || D < 1 || qkv.shape[2] % (3 * D) != 0)
    user_error("[attention_decode] expected a packed projection (B, T, 3C) of heads of width {}, got {}", D,
               to_string(qkv));
  int64_t C = qkv.shape[2] / 3;
  return {qkv.shape[0], qkv.shape[1], C, C / D, D};
}

int64_t attention_decode_window(const Attrs& attrs) { return attrs.get_int("window", 0); }

std::pair<ValueId, ValueId> attention_decode(GraphBuilder& g, ValueId qkv, ValueId cache, ValueId position,
                                             int64_t heads, double scale, int64_t window) {
  int64_t head_width = g.shape(qkv)[2] / 3 / heads;
  Attrs attrs{{"head_width", head_width}, {"scale", scale}};
  if (window > 0) attrs.set("window", window);
  auto out = g.add(op::attention_decode, {qkv, cache, position}, std::move(attrs));
  return {out[0], out[1]};
}

}  // namespace tokamak
