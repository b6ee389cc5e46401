// Ops whose elements depend on their index alone: constant, iota and counter-based random numbers.

#include "ops/generate.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/pointwise.h"
#include "ops/sharding_rules.h"
#include "ops/uniform_numbers.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr AttrDef kConstantAttrs[] = {{"dtype"}, {"shape"}, {"value"}};
constexpr AttrDef kIotaAttrs[] = {{"dim"}, {"period", false}, {"shape"}};
constexpr AttrDef kRandomAttrs[] = {{"matrix", false}, {"place", false}, {"shape"}, {kRandomStream}};

ValueTypes infer_constant(const NodeSpec& spec) {
  return {{parse_dtype(spec.attrs.get_string("dtype")), spec.attrs.get_ints("shape")}};
}

void constant_reference(const Node& node, std::span<const HostTensor* const>, std::span<HostTensor> out) {
  std::fill(out[0].data.begin(), out[0].data.end(), node.attrs.get_double("value"));
}

void constant_tile(const Node& node, std::span<const TileOperand>, int64_t, int64_t n, float* out) {
  std::fill_n(out, n, float(node.attrs.get_double("value")));
}

ValueTypes infer_iota(const NodeSpec& spec) {
  const Shape& shape = spec.attrs.get_ints("shape");
  int64_t dim = spec.attrs.get_int("dim");
  if (dim < 0 || dim >= int64_t(shape.size())) user_error("[iota] expected a dim of {}, got {}", to_string(shape), dim);
  if (int64_t period = spec.attrs.get_int("period", 1); period < 1)
    user_error("[iota] expected a period of 1 or more, got {}", period);
  return {{DType::kF32, shape}};
}

// value = (i / inner) % size % period
struct IotaSteps {
  int64_t inner = 1, size, period;
};
IotaSteps iota_steps(const Node& node) {
  const Shape& shape = node.attrs.get_ints("shape");
  auto dim = size_t(node.attrs.get_int("dim"));
  IotaSteps steps{1, shape[dim], node.attrs.get_int("period", shape[dim])};
  for (size_t d = dim + 1; d < shape.size(); ++d) steps.inner *= shape[d];
  return steps;
}

void iota_reference(const Node& node, std::span<const HostTensor* const>, std::span<HostTensor> out) {
  auto [inner, size, period] = iota_steps(node);
  for (int64_t i = 0; i < out[0].size(); ++i) out[0][i] = double((i / inner) % size % period);
}

// Runs of equal or of consecutive indices, so that the division happens once a run.
void iota_tile(const Node& node, std::span<const TileOperand>, int64_t first, int64_t n, float* out) {
  auto [inner, size, period] = iota_steps(node);
  for (int64_t done = 0; done < n;) {
    int64_t at = first + done, index = (at / inner) % size, value = index % period;
    int64_t run = std::min(n - done, inner == 1 ? std::min(size - index, period - value) : inner - at % inner);
    for (int64_t i = 0; i < run; ++i) out[done + i] = float(inner == 1 ? value + i : value);
    done += run;
  }
}

ShardingRule iota_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule = pointwise_rule(spec, outputs);
  auto dim = size_t(spec.attrs.get_int("dim"));
  Factor& counted = rule.factors[size_t(rule.outputs[0][dim][0])];
  spec.attrs.find("period") ? counted.whole = true : counted.placed = true;
  return rule;
}
ValueIds place_iota(GraphBuilder& g, const Node& part, std::span<const ValueId>, const PlacedCut& cut,
                    std::span<const PlacedCut>) {
  return {add(g, g.add1(op::iota, {}, part.attrs), start_of(g, cut))};
}

ValueTypes infer_random(const NodeSpec& spec) {
  check_numbers(spec, spec.inputs[0], spec.attrs.get_ints("shape"));
  return {{DType::kF32, spec.attrs.get_ints("shape")}};
}

void random_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  UniformNumbers uniform(node.attrs, *in[0]);
  for (int64_t i = 0; i < out[0].size(); ++i) out[0][i] = uniform(i);
}

void random_tile(const Node& node, std::span<const TileOperand> in, int64_t first, int64_t n, float* out) {
  const auto* rng = static_cast<const int32_t*>(in[0].raw);
  ElementPlace place(node.attrs, rng);
  if (node.attrs.find("matrix") || !place.keeps_runs()) {
    UniformNumbers uniform(node.attrs, rng);
    for (int64_t i = 0; i < n; ++i) out[i] = uniform(first + i);
    return;
  }
  uint64_t key = step_key(rng[0], rng[1]);
  auto random_stream = uint64_t(node.attrs.get_int(kRandomStream));
  for (int64_t i = first; i < first + n;) {
    auto numbers = dropout_numbers(key, uint64_t(place(i) / 8), random_stream);
    for (int64_t lane = i % 8; lane < 8 && i < first + n; ++lane, ++i)
      out[i - first] = UniformNumbers::scaled(numbers[size_t(lane)]);
  }
}

ShardingRule random_rule(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule;
  rule.outputs = {numbered_factors(rule, spec.attrs, outputs[0].shape)};
  rule.inputs = {whole_factors(rule, spec.inputs[0].shape)};
  return rule;
}
ValueIds number_random(GraphBuilder& g, const Node& part, std::span<const ValueId> in,
                       std::span<const PlacedCut> cuts) {
  Attrs attrs = part.attrs;
  ValueId rng = place_share(g, attrs, in[0], attrs.get_ints("shape"), cuts);
  return {g.add1(op::random_uniform, {rng}, std::move(attrs))};
}

Cost random_cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = default_cost(spec, outputs);
  cost.draws = double(num_elements(outputs[0].shape));
  return cost;
}

constexpr std::string_view kNoInput = "depends on no differentiable input";

}  // namespace

void check_numbers(const NodeSpec& spec, const ValueType& rng, const Shape& shape) {
  if (ValueType expected = rng_type(spec.attrs); rng != expected)
    user_error("[{}] expected rng to be {} (seed, step{}), got {}", spec.op.name, to_string(expected),
               expected.shape[0] > 2 ? ", coordinates" : "", to_string(rng));
  if (!spec.attrs.find("matrix")) return;
  const std::vector<int64_t>& matrix = spec.attrs.get_ints("matrix");
  int64_t size = matrix.size() == 2 ? matrix[0] * matrix[1] : 0;
  int64_t elements = num_elements(shape);
  std::vector<int64_t> place = place_attr(spec.attrs);
  for (size_t k = 0; k < place.size(); k += kPlaceNumbers) elements *= place[k];
  if (size < 1 || elements % size != 0)
    user_error("[{}] expected a matrix (rows, columns) that divides {}, got {}", spec.op.name, to_string(shape),
               to_string(Attr(matrix)));
}

namespace op {
constinit const OpDef constant = {.name = "constant",
                                  .min_inputs = 0,
                                  .max_inputs = 0,
                                  .attrs = kConstantAttrs,
                                  .infer = infer_constant,
                                  .no_gradient = kNoInput,
                                  .reference = constant_reference,
                                  .fusion = Fusion::kPointwise,
                                  .tile = constant_tile,
                                  .sharding = {.of_part = set_part_shape}};
constinit const OpDef iota = {.name = "iota",
                              .min_inputs = 0,
                              .max_inputs = 0,
                              .attrs = kIotaAttrs,
                              .infer = infer_iota,
                              .no_gradient = kNoInput,
                              .reference = iota_reference,
                              .fusion = Fusion::kPointwise,
                              .tile = iota_tile,
                              .sharding = {.rule = iota_rule, .of_part = set_part_shape, .place = place_iota}};
constinit const OpDef random_uniform = {
    .name = "random_uniform",
    .attrs = kRandomAttrs,
    .infer = infer_random,
    .no_gradient = kNoInput,
    .reference = random_reference,
    .cost = random_cost,
    .fusion = Fusion::kPointwise,
    .tile = random_tile,
    .sharding = {.rule = random_rule, .of_part = set_part_shape, .number = number_random}};
}  // namespace op

ValueId constant(GraphBuilder& g, double value, Shape shape, DType dtype) {
  return g.add1(op::constant, {},
                {{"dtype", std::string(dtype_name(dtype))}, {"shape", std::move(shape)}, {"value", value}});
}
ValueId iota(GraphBuilder& g, Shape shape, int64_t dim, int64_t period) {
  Attrs attrs{{"dim", dim}, {"shape", std::move(shape)}};
  if (period > 0) attrs.set("period", period);
  return g.add1(op::iota, {}, std::move(attrs));
}
ValueId random_uniform(GraphBuilder& g, ValueId rng, Shape shape, int64_t random_stream) {
  return g.add1(op::random_uniform, {rng}, {{"shape", std::move(shape)}, {kRandomStream, random_stream}});
}

}  // namespace tokamak
