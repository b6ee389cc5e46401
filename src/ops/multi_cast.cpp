// multi_cast(x0, x1, ...) {to, joins} -> every tensor in type `to`, of the same shape: cast (ops/pointwise.cpp) of many
// tensors in one kernel. Inputs and `to` are float types; inputs may be of different ones. bf16 and f16 round to
// nearest, ties to even. With `joins`, which is optional, output i is joins[i] inputs in a row side by side along dim
// 0, as concat (ops/movement.cpp) puts them; of several inputs all other dims are the same.
#include "ops/multi_cast.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/interpret.h"
#include "ops/many_tensors.h"
#include "ops/movement.h"
#include "ops/pointwise.h"

#include <algorithm>
#include <numeric>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"joins", false}, {"to"}};

DType target_of(const Attrs& attrs) { return parse_dtype(attrs.get_string("to")); }

// By output, of how many inputs it is made.
std::vector<int64_t> counts_of(const Attrs& attrs, size_t inputs) {
  return attrs.find("joins") ? attrs.get_ints("joins") : std::vector<int64_t>(inputs, 1);
}

void check_joins(const NodeSpec& spec, const std::vector<int64_t>& counts) {
  bool positive = std::ranges::all_of(counts, [](int64_t count) { return count > 0; });
  int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t(0));
  if (!positive || sum != int64_t(spec.inputs.size()))
    user_error("[multi_cast] expected joins of {} tensors, got {}", spec.inputs.size(), to_string(Attr(counts)));
}

// Of the inputs from `first` on.
Shape joined_shape(const NodeSpec& spec, size_t first, int64_t count) {
  Shape shape = spec.inputs[first].shape;
  if (count > 1 && shape.empty())
    user_error("[multi_cast] expected tensors with a dim to join, got {}", to_string(spec.inputs[first]));
  for (size_t i = first + 1; i < first + size_t(count); ++i) {
    const Shape& part = spec.inputs[i].shape;
    if (part.size() != shape.size() || !std::equal(part.begin() + 1, part.end(), shape.begin() + 1))
      user_error("[multi_cast] expected tensors like {} but for dim 0, got {}", to_string(spec.inputs[first]),
                 to_string(spec.inputs[i]));
    shape[0] += part[0];
  }
  return shape;
}

ValueTypes infer(const NodeSpec& spec) {
  DType to = target_of(spec.attrs);
  if (!is_float(to)) user_error("[multi_cast] expected a float type to cast to, got {}", dtype_name(to));
  for (const ValueType& type : spec.inputs)
    if (!is_float(type.dtype)) user_error("[multi_cast] expected float tensors, got {}", to_string(type));
  const std::vector<int64_t> counts = counts_of(spec.attrs, spec.inputs.size());
  check_joins(spec, counts);
  ValueTypes types;
  size_t first = 0;
  for (int64_t count : counts) {
    types.push_back({to, joined_shape(spec, first, count)});
    first += size_t(count);
  }
  return types;
}

ValueIds gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  ValueIds grads;
  for (size_t output = 0; output < dy.size(); ++output) {
    std::span<const ValueId> parts = cast_values(node, output);
    int64_t begin = 0;
    for (ValueId input : parts) {
      ValueType type = g.type(input);
      ValueId part = dy[output];
      if (part != kNoValue && parts.size() > 1) part = slice(g, part, 0, begin, type.shape[0]);
      grads.push_back(part == kNoValue ? kNoValue : cast(g, part, type.dtype));
      if (!type.shape.empty()) begin += type.shape[0];
    }
  }
  return grads;
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  DType to = target_of(node.attrs);
  size_t t = 0;
  for (size_t output = 0; output < out.size(); ++output) {
    int64_t begin = 0;
    for (size_t part = 0; part < cast_values(node, output).size(); ++part, ++t) {
      for (int64_t i = 0; i < in[t]->size(); ++i) out[output][begin + i] = round_to(to, (*in[t])[i]);
      begin += in[t]->size();
    }
  }
}

ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  ValueIds outputs;
  size_t t = 0;
  for (int64_t count : counts_of(node.attrs, in.size())) {
    ValueIds parts;
    for (size_t end = t + size_t(count); t < end; ++t) parts.push_back(cast(g, in[t], target_of(node.attrs)));
    outputs.push_back(count == 1 ? parts[0] : concat(g, std::move(parts), 0));
  }
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

ValueIds multi_cast(GraphBuilder& g, ValueIds values, DType to, std::vector<int64_t> joins) {
  Attrs attrs{{"to", std::string(dtype_name(to))}};
  if (std::ranges::any_of(joins, [](int64_t count) { return count != 1; })) attrs.set("joins", std::move(joins));
  return g.add(op::multi_cast, std::move(values), std::move(attrs));
}

std::span<const ValueId> cast_values(const Node& node, size_t output) {
  const std::vector<int64_t> counts = counts_of(node.attrs, node.inputs.size());
  int64_t first = std::accumulate(counts.begin(), counts.begin() + int64_t(output), int64_t(0));
  return std::span(node.inputs).subspan(size_t(first), size_t(counts[output]));
}

std::vector<CastPlace> cast_places(const Graph& graph, const Node& node) {
  std::vector<CastPlace> places;
  for (size_t output = 0; output < node.outputs.size(); ++output) {
    int64_t begin = 0;
    for (ValueId value : cast_values(node, output)) {
      places.push_back({output, begin});
      begin += num_elements(graph.shape(value));
    }
  }
  return places;
}

}  // namespace tokamak
