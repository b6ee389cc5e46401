// multi_add(x0, x1, ..., y0, y1, ..., z0, ...) {terms} -> x0 + y0 + z0, x1 + y1 + z1, ...: add (ops/pointwise.cpp) of
// many f32 tensors in one kernel. Each sum is of `terms` tensors of one shape, added from the first to the last, each
// addition rounded.
#include "ops/multi_add.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/interpret.h"
#include "ops/many_tensors.h"
#include "ops/pointwise.h"

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"terms"}};

ValueTypes infer(const NodeSpec& spec) {
  int64_t terms = spec.attrs.get_int("terms"), inputs = int64_t(spec.inputs.size());
  if (terms < 2) user_error("[multi_add] expected at least 2 terms, got {}", terms);
  if (inputs % terms != 0)
    user_error("[multi_add] expected a multiple of {} inputs for as many terms, got {}", terms, inputs);
  size_t sums = size_t(inputs / terms);
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (spec.inputs[i].dtype != DType::kF32)
      user_error("[multi_add] expected f32 tensors, got {}", to_string(spec.inputs[i]));
    if (spec.inputs[i] != spec.inputs[i % sums])
      user_error("[multi_add] expected terms of one shape, got {} and {}", to_string(spec.inputs[i % sums]),
                 to_string(spec.inputs[i]));
  }
  return {spec.inputs.begin(), spec.inputs.begin() + ptrdiff_t(sums)};
}

ValueIds gradient(GraphBuilder&, const Node& node, std::span<const ValueId> dy) {
  ValueIds grads;
  for (size_t i = 0; i < node.inputs.size(); ++i) grads.push_back(dy[i % dy.size()]);
  return grads;
}

void reference(const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  for (size_t sum = 0; sum < out.size(); ++sum)
    for (int64_t i = 0; i < out[sum].size(); ++i) {
      double total = (*in[sum])[i];
      for (size_t term = sum + out.size(); term < in.size(); term += out.size()) total += (*in[term])[i];
      out[sum][i] = total;
    }
}

ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  size_t sums = node.outputs.size();
  ValueIds totals(in.begin(), in.begin() + ptrdiff_t(sums));
  for (size_t i = sums; i < in.size(); ++i) totals[i % sums] = add(g, totals[i % sums], in[i]);
  return totals;
}

// One FLOP for each addition.
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = default_cost(spec, outputs);
  cost.flops = 0;
  for (const ValueType& type : outputs) cost.flops += double(num_elements(type.shape));
  cost.flops *= double(spec.attrs.get_int("terms") - 1);
  return cost;
}

}  // namespace

namespace op {
constinit const OpDef multi_add = of_many_tensors({.name = "multi_add",
                                                   .min_inputs = 2,
                                                   .attrs = kAttrs,
                                                   .infer = infer,
                                                   .gradient = gradient,
                                                   .reference = reference,
                                                   .decompose = decompose,
                                                   .cost = cost,
                                                   .in_place = [](const Node&, int output) { return output; }});
}  // namespace op

ValueIds multi_add(GraphBuilder& g, const std::vector<ValueIds>& terms) {
  ValueIds inputs;
  for (const ValueIds& term : terms) inputs.insert(inputs.end(), term.begin(), term.end());
  return g.add(op::multi_add, std::move(inputs), {{"terms", int64_t(terms.size())}});
}

}  // namespace tokamak
