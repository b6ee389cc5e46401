// multi_cast(x0, x1, ...) {to} -> every tensor in type `to`, of the same shape: cast (ops/pointwise.cpp) of many
// tensors in one kernel. Inputs and `to` are float types; inputs may be of different ones. bf16 and f16 round to
// nearest, ties to even.
#include "ops/multi_cast.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/interpret.h"
#include "ops/many_tensors.h"
#include "ops/pointwise.h"

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"to"}};

DType target_of(const Attrs& attrs) { return parse_dtype(attrs.get_string("to")); }

ValueTypes infer(const NodeSpec& spec) {
  DType to = target_of(spec.attrs);
  if (!is_float(to)) user_error("[multi_cast] expected a float type to cast to, got {}", dtype_name(to));
  ValueTypes types;
  for (const ValueType& type : spec.inputs) {
    if (!is_float(type.dtype)) user_error("[multi_cast] expected float tensors, got {}", to_string(type));
    types.push_back({to, type.shape});
  }
  return types;
}

ValueIds gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  ValueIds grads;
  for (size_t i = 0; i < dy.size(); ++i)
    grads.push_back(dy[i] == kNoValue ? kNoValue : cast(g, dy[i], g.type(node.inputs[i]).dtype));
  return grads;
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  DType to = target_of(node.attrs);
  for (size_t t = 0; t < in.size(); ++t)
    for (int64_t i = 0; i < in[t]->size(); ++i) out[t][i] = round_to(to, (*in[t])[i]);
}

ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  ValueIds outputs;
  for (ValueId x : in) outputs.push_back(cast(g, x, target_of(node.attrs)));
  return outputs;
}

}  // namespace

namespace op {
constinit const OpDef multi_cast = of_many_tensors({.name = "multi_cast",
                                                    .attrs = kAttrs,
                                                    .infer = infer,
                                                    .gradient = gradient,
                                                    .reference = reference,
                                                    .decompose = decompose,
                                                    .cost = cost_of_elements<1>});
}  // namespace op

ValueIds multi_cast(GraphBuilder& g, ValueIds values, DType to) {
  return g.add(op::multi_cast, std::move(values), {{"to", std::string(dtype_name(to))}});
}

}  // namespace tokamak
