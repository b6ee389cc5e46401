#include "ops/packed_rotary.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/rotary.h"

#include <algorithm>
#include <array>

namespace tokamak {
namespace {

using Tensors = std::span<const HostTensor* const>;

constexpr AttrDef kAttrs[] = {{"factor"},           {"group"}, {"head_width"}, {"high_freq"}, {"low_freq"},
                              {"original_context"}, {"theta"}};

// Heads of q, of k and of v in a group that shares them, of what comes in.
int64_t heads_of_group(const NodeSpec& spec) {
  int64_t group = spec.attrs.get_int("group");
  return &spec.op == &op::packed_rotary ? group + 2 : 3 * group;
}

ValueTypes infer(const NodeSpec& spec) {
  const ValueType &from = spec.inputs[0], &positions = spec.inputs[1];
  int64_t D = spec.attrs.get_int("head_width"), group = spec.attrs.get_int("group");
  bool heads = D >= 2 && D % 2 == 0 && group >= 1 && from.shape.size() == 3 && from.shape[2] > 0 &&
               from.shape[2] % (heads_of_group(spec) * D) == 0;
  if (!heads)
    user_error("[{}] expected (B, T, columns) of heads of {} columns in groups of {}, got {}", spec.op.name, D, group,
               to_string(from));
  RotaryDims d = rotary_dims(spec);
  if (positions.dtype != DType::kI32 || (positions.shape != Shape{1, d.T} && positions.shape != Shape{d.B, d.T}))
    user_error("[{}] expected positions i32[{},{}] or i32[1,{}], got {}", spec.op.name, d.B, d.T, d.T,
               to_string(positions));
  bool is_forward = &spec.op == &op::packed_rotary;
  return {{from.dtype, {d.B, d.T, is_forward ? 3 * d.H * d.D : d.projected()}}};
}

// q, k and v, or their gradients, which lie side by side in a row of `packed`; `move` goes one way or the other.
template <typename Move>
void for_runs(const RotaryDims& d, std::span<HostTensor> parts, const Move& move) {
  int64_t begin = 0;
  for (HostTensor& part : parts) {
    int64_t width = part.shape()[2];
    for (int64_t row = 0; row < d.B * d.T; ++row) move(part, row * width, row * d.projected() + begin, width);
    begin += width;
  }
}

std::vector<HostTensor> parts_of(const RotaryDims& d, DType dtype) {
  ValueType q{dtype, {d.B, d.T, d.H * d.D}}, kv{dtype, {d.B, d.T, d.K * d.D}};
  return {HostTensor(q), HostTensor(kv), HostTensor(kv)};
}

void reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  RotaryDims d = rotary_dims({*node.op, {in[0]->type, in[1]->type}, node.attrs});
  std::vector<HostTensor> parts = parts_of(d, in[0]->type.dtype);
  for_runs(d, parts, [&](HostTensor& part, int64_t at, int64_t packed, int64_t count) {
    std::copy_n(in[0]->data.begin() + packed, count, part.data.begin() + at);
  });
  Node apart = node;
  apart.op = &op::rotary_qkv;
  const std::array<const HostTensor*, 4> inputs = {&parts[0], &parts[1], &parts[2], in[1]};
  apart.op->reference(apart, inputs, out);
}

void grad_reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  RotaryDims d = rotary_dims({*node.op, {in[0]->type, in[1]->type}, node.attrs});
  std::vector<HostTensor> parts = parts_of(d, in[0]->type.dtype);
  Node apart = node;
  apart.op = &op::rotary_qkv_grad;
  apart.op->reference(apart, in, parts);
  for_runs(d, parts, [&](HostTensor& part, int64_t at, int64_t packed, int64_t count) {
    std::copy_n(part.data.begin() + at, count, out[0].data.begin() + packed);
  });
}

int in_place(const Node& node, int) { return node.attrs.get_int("group") == 1 ? 0 : -1; }

// Without groups as it runs in place: q and k alone.
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = default_cost(spec, outputs, 3);
  if (spec.attrs.get_int("group") == 1) cost.bytes *= 2.0 / 3;
  return cost;
}

}  // namespace

namespace op {
constinit const OpDef packed_rotary = {.name = "packed_rotary",
                                       .min_inputs = 2,
                                       .max_inputs = 2,
                                       .attrs = kAttrs,
                                       .infer = infer,
                                       .no_gradient = "it is made of rotary_qkv behind differentiation",
                                       .reference = reference,
                                       .cost = cost,
                                       .in_place = in_place};
constinit const OpDef packed_rotary_grad = {.name = "packed_rotary_grad",
                                            .min_inputs = 2,
                                            .max_inputs = 2,
                                            .attrs = kAttrs,
                                            .infer = infer,
                                            .no_gradient = "second derivatives are not needed",
                                            .reference = grad_reference,
                                            .cost = cost,
                                            .in_place = in_place};
}  // namespace op

ValueId packed_rotary(GraphBuilder& g, const Graph& graph, const Node& node, ValueId from, ValueId positions) {
  Attrs attrs = node.attrs;
  attrs.set("group", rotary_dims(spec_of(graph, node)).group());
  const OpDef& op = node.op == &op::rotary_qkv ? op::packed_rotary : op::packed_rotary_grad;
  return g.add1(op, {from, positions}, std::move(attrs));
}

}  // namespace tokamak
