#include "ops/context_attention.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/attention.h"
#include "ops/attention_operands.h"
#include "ops/collective.h"
#include "ops/element_place.h"
#include "ops/generate.h"
#include "ops/movement.h"

namespace tokamak {
namespace {

using Tensors = std::span<const HostTensor* const>;

constexpr AttrDef kAttrs[] = {{"dropout"},     {"heads"},       {"place", false}, {"scale"},
                              {kRandomStream}, {"tf32", false}, {"window", false}};
constexpr int kQkv = 0, kKv = 1, kCoordinate = 2, kOut = 3, kLse = 4, kDout = 5;  // inputs

void check_inputs(const NodeSpec& spec, const AttentionDims& d) {
  const ValueType &qkv = spec.inputs[kQkv], &kv = spec.inputs[kKv];
  int64_t ranks = kv.shape.empty() || d.B == 0 ? 0 : kv.shape[0] / d.B;
  if (ValueType expected{qkv.dtype, {ranks * d.B, d.T, 2 * d.C}}; ranks < 2 || d.T % 2 != 0 || kv != expected)
    user_error("[{}] expected keys and values (N B, T, 2C) of several ranks, T even, got {} for {}", spec.op.name,
               to_string(kv), to_string(qkv));
  if (ValueType coordinate{DType::kI32, {}}; spec.inputs[kCoordinate] != coordinate)
    user_error("[{}] expected a coordinate i32[], got {}", spec.op.name, to_string(spec.inputs[kCoordinate]));
  check_optional_operands(spec, d);
}

ValueTypes infer(const NodeSpec& spec) {
  AttentionDims d = attention_dims(spec);
  check_inputs(spec, d);
  return {{spec.inputs[kQkv].dtype, {d.B, d.T, d.C}}, {DType::kF32, {d.B, d.H, d.T}}};
}

ValueTypes infer_grad(const NodeSpec& spec) {
  AttentionDims d = attention_dims(spec);
  check_inputs(spec, d);
  const ValueType &out = spec.inputs[kOut], &dout = spec.inputs[kDout];
  if (out.shape != Shape{d.B, d.T, d.C} || dout.shape != out.shape)
    user_error("[{}] expected out and dout (B, T, C), got {} and {}", spec.op.name, to_string(out), to_string(dout));
  if (ValueType lse{DType::kF32, {d.B, d.H, d.T}}; spec.inputs[kLse] != lse)
    user_error("[{}] expected lse to be {}, got {}", spec.op.name, to_string(lse), to_string(spec.inputs[kLse]));
  return {{spec.inputs[kQkv].dtype, out.shape}, spec.inputs[kKv]};
}

// A rank's share of 2 or 5 matmuls of the whole's rows, half of which the causal mask hides.
Cost cost_of(const NodeSpec& spec, std::span<const ValueType> outputs, double matmuls) {
  AttentionDims d = attention_dims(spec);
  Cost cost = default_cost(spec, outputs);
  double seen = causal_keys(double(zigzag_of(spec).positions()), attention_window(spec.attrs));
  double pairs = double(d.B) * double(d.T) * seen;
  cost.flops = matmuls * 2.0 * pairs * double(d.C);
  if (spec.attrs.get_double("dropout") > 0) cost.draws = pairs * double(d.H);
  return cost;
}
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) { return cost_of(spec, outputs, 2); }
Cost grad_cost(const NodeSpec& spec, std::span<const ValueType> outputs) { return cost_of(spec, outputs, 5); }

// The reference: attention of the whole sequence, in which the rows of other ranks are zero where they are not known.
// What others' queries add to gradients is zero then, as their dout is.

struct Rows {
  int64_t outer, inner;  // (outer, rows, inner)
};
Rows rows_at(const Shape& shape, size_t dim) {
  Rows rows{1, 1};
  for (size_t d = 0; d < shape.size(); ++d) (d < dim ? rows.outer : rows.inner) *= d == dim ? 1 : shape[d];
  return rows;
}

// The rank's rows within a tensor of the whole's.
HostTensor spread(const HostTensor& part, size_t dim, const ZigZag& zigzag) {
  HostTensor whole(part.type);
  whole.type.shape[dim] = zigzag.positions();
  whole = HostTensor(whole.type);
  auto [outer, inner] = rows_at(part.shape(), dim);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t t = 0; t < zigzag.rows; ++t)
      for (int64_t c = 0; c < inner; ++c)
        whole[(o * zigzag.positions() + zigzag.position(t)) * inner + c] = part[(o * zigzag.rows + t) * inner + c];
  return whole;
}

void take_rows(const HostTensor& whole, size_t dim, const ZigZag& zigzag, HostTensor& part) {
  auto [outer, inner] = rows_at(part.shape(), dim);
  for (int64_t i = 0; i < part.size(); ++i) {
    int64_t row = i / inner, t = row % zigzag.rows;
    part[i] = whole[(row / zigzag.rows * zigzag.positions() + zigzag.position(t)) * inner + i % inner];
  }
}

// Of key or value c (of 2C) at a position of a sample, its place in kv and in the whole's qkv.
struct KeyPlaces {
  int64_t kv, qkv;
};
KeyPlaces key_places(const AttentionDims& d, const ZigZag& zigzag, int64_t b, int64_t position, int64_t c) {
  auto [rank, row] = zigzag.place(position);
  return {((rank * d.B + b) * d.T + row) * 2 * d.C + c, (b * zigzag.positions() + position) * 3 * d.C + d.C + c};
}
template <typename Move>
void for_keys(const AttentionDims& d, const ZigZag& zigzag, const Move& move) {
  for (int64_t b = 0; b < d.B; ++b)
    for (int64_t position = 0; position < zigzag.positions(); ++position)
      for (int64_t c = 0; c < 2 * d.C; ++c) move(key_places(d, zigzag, b, position, c));
}

struct Whole {
  AttentionDims d;
  ZigZag zigzag;
  Node node;
  std::vector<HostTensor> inputs;

  Whole(const OpDef& op, const Node& part, Tensors in)
      : d(attention_dims({*part.op, {in[kQkv]->type}, part.attrs})),
        zigzag(zigzag_of({*part.op, {in[kQkv]->type, in[kKv]->type}, part.attrs})) {
    zigzag.coordinate = int64_t((*in[kCoordinate])[0]);
    node.op = &op;
    node.attrs = part.attrs;
    node.attrs.set("causal", true);
    HostTensor& qkv = inputs.emplace_back(spread(*in[kQkv], 1, zigzag));
    for_keys(d, zigzag, [&](const KeyPlaces& at) { qkv[at.qkv] = (*in[kKv])[at.kv]; });
    if (&op == &op::attention_grad) {
      inputs.push_back(spread(*in[kOut], 1, zigzag));
      inputs.push_back(spread(*in[kLse], 2, zigzag));
      inputs.push_back(spread(*in[kDout], 1, zigzag));
    }
    AttentionOperands at = attention_operands(*part.op, part.attrs, in.size());
    if (at.rng >= 0) inputs.push_back(*in[size_t(at.rng)]);
    if (at.documents >= 0) inputs.push_back(spread(*in[size_t(at.documents)], 1, zigzag));
  }

  std::vector<HostTensor> run(const ValueTypes& types) const {
    std::vector<const HostTensor*> pointers;
    for (const HostTensor& input : inputs) pointers.push_back(&input);
    std::vector<HostTensor> outputs;
    for (const ValueType& type : types) outputs.emplace_back(type);
    node.op->reference(node, pointers, outputs);
    return outputs;
  }
};

void reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  Whole whole(op::attention, node, in);
  const auto& [d, zigzag, part, inputs] = whole;
  std::vector<HostTensor> all =
      whole.run({{out[0].type.dtype, {d.B, zigzag.positions(), d.C}}, {DType::kF32, {d.B, d.H, zigzag.positions()}}});
  take_rows(all[0], 1, zigzag, out[0]);
  take_rows(all[1], 2, zigzag, out[1]);
}

void grad_reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  Whole whole(op::attention_grad, node, in);
  const auto& [d, zigzag, part, inputs] = whole;
  HostTensor dqkv = std::move(whole.run({inputs[0].type})[0]);
  HostTensor own({out[0].type.dtype, in[kQkv]->shape()});
  take_rows(dqkv, 1, zigzag, own);
  for (int64_t i = 0; i < out[0].size(); ++i) out[0][i] = own[i / d.C * 3 * d.C + i % d.C];
  for_keys(d, zigzag, [&](const KeyPlaces& at) { out[1][at.kv] = dqkv[at.qkv]; });
}

// The node that computes a part: `in` are attention's operands, of which the first gives the two that are new.
ValueIds place_on_context(GraphBuilder& g, const OpDef& op, const Node& part, std::span<const ValueId> in,
                          const PlacedCut& cut, std::span<const PlacedCut> numbered) {
  AttentionOperands at = attention_operands(*part.op, part.attrs, in.size());
  Attrs attrs;
  for (const char* name : {"dropout", "heads", "scale", kRandomStream}) attrs.set(name, *part.attrs.find(name));
  if (int64_t window = attention_window(part.attrs); window > 0) attrs.set("window", window);
  Shape qkv = g.shape(in[0]);
  ValueId keys = slice(g, in[0], 2, qkv[2] / 3, qkv[2] / 3 * 2);
  ValueIds inputs{in[0], all_gather(g, keys, cut.axis, {0}), cut.coordinate};
  inputs.insert(inputs.end(), in.begin() + 1, in.end());
  if (at.rng >= 0 && !numbered.empty())
    inputs[size_t(at.rng) + 2] = place_share(g, attrs, in[size_t(at.rng)], {qkv[0], attrs.get_int("heads")}, numbered);
  return g.add(op, std::move(inputs), std::move(attrs));
}

}  // namespace

namespace op {
constinit const OpDef context_attention = {.name = "context_attention",
                                           .min_inputs = 3,
                                           .max_inputs = 5,
                                           .attrs = kAttrs,
                                           .infer = infer,
                                           .no_gradient = "the shard pass appends it, after differentiation",
                                           .reference = reference,
                                           .cost = cost,
                                           .autocast = Autocast::kLow};
constinit const OpDef context_attention_grad = {.name = "context_attention_grad",
                                                .min_inputs = 6,
                                                .max_inputs = 8,
                                                .attrs = kAttrs,
                                                .infer = infer_grad,
                                                .no_gradient = "second derivatives are not needed",
                                                .reference = grad_reference,
                                                .cost = grad_cost,
                                                .autocast = Autocast::kLow,
                                                .low_inputs = 0b101011};  // not lse
}  // namespace op

ZigZag zigzag_of(const NodeSpec& spec) {
  const Shape &qkv = spec.inputs[kQkv].shape, &kv = spec.inputs[kKv].shape;
  return {.rows = qkv[1], .ranks = kv[0] / qkv[0]};
}

bool can_cut_time(const NodeSpec& spec) { return spec.attrs.get_bool("causal") && !spec.attrs.get_bool("sums", false); }

ValueIds place_attention(GraphBuilder& g, const Node& part, std::span<const ValueId> in, const PlacedCut& cut,
                         std::span<const PlacedCut> numbered) {
  return place_on_context(g, op::context_attention, part, in, cut, numbered);
}

ValueIds place_attention_grad(GraphBuilder& g, const Node& part, std::span<const ValueId> in, const PlacedCut& cut,
                              std::span<const PlacedCut> numbered) {
  ValueIds grads = place_on_context(g, op::context_attention_grad, part, in, cut, numbered);
  return {concat(g, {grads[0], reduce_scatter(g, grads[1], cut.axis, {0})}, 2)};
}

}  // namespace tokamak
