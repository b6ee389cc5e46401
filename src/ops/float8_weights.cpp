// float8_weights(w0, w1, ...) {stored} -> for each weight its copies in f8e4m3, as it is and transposed, as far as
// `stored` (1, 2, or 3 for both) says, its scale, and where `stored` is 4 more the length of its longest column. The
// element of largest magnitude becomes 448, the largest e4m3:
//
//   scale = max(1e-30, max |w|) / 448    copy = round(w * (448 / max(1e-30, max |w|)))    w rounded to bf16, all else
//   f32
#include "ops/float8_weights.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/float8.h"
#include "ops/generate.h"
#include "ops/interpret.h"
#include "ops/many_tensors.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"stored"}};
constexpr int64_t kPlain = 1, kTurned = 2, kCopies = kPlain | kTurned, kLongest = 4;
constexpr int64_t kMultiple = 16;  // of sizes: kernels move 16 elements at a time
constexpr float kLeast = 1e-30f;   // of a limit: the scale of a matrix of zeros is no number
constexpr float kLargest = 448;

ValueTypes infer(const NodeSpec& spec) {
  const std::vector<int64_t>& stored = spec.attrs.get_ints("stored");
  if (stored.size() != spec.inputs.size())
    user_error("[float8_weights] expected what is stored of {} weights, got {}", spec.inputs.size(), stored.size());
  ValueTypes types;
  for (size_t i = 0; i < stored.size(); ++i) {
    const ValueType& type = spec.inputs[i];
    bool whole = type.shape.size() == 2 && type.shape[0] % kMultiple == 0 && type.shape[1] % kMultiple == 0;
    if (!whole || (type.dtype != DType::kF32 && type.dtype != DType::kBF16))
      user_error("[float8_weights] expected matrices in f32 or bf16, of sizes that {} divides, got {}", kMultiple,
                 to_string(type));
    if ((stored[i] & kCopies) == 0 || (stored[i] & ~(kCopies | kLongest)) != 0)
      user_error("[float8_weights] expected 1, 2 or 3, or 4 more, in stored, got {}", stored[i]);
    if (stored[i] & kPlain) types.push_back({DType::kF8E4M3, type.shape});
    if (stored[i] & kTurned) types.push_back({DType::kF8E4M3, {type.shape[1], type.shape[0]}});
    types.push_back({DType::kF32, {}});
    if (stored[i] & kLongest) types.push_back({DType::kF32, {}});
  }
  return types;
}

// In f32, as backends compute: with more digits some elements would be rounded the other way.
struct Limit {
  float scale, inverse;
};
Limit limit_of(const HostTensor& weight) {
  float limit = kLeast;
  for (double w : weight.data) limit = std::max(limit, float(std::fabs(round_to(DType::kBF16, w))));
  return {limit / kLargest, kLargest / limit};
}

HostTensor cast_weight(const HostTensor& weight, float inverse) {
  HostTensor made({DType::kF8E4M3, weight.shape()});
  for (int64_t i = 0; i < weight.size(); ++i)
    made[i] = round_float8(DType::kF8E4M3, double(float(round_to(DType::kBF16, weight[i])) * inverse));
  return made;
}

double longest_column(const HostTensor& weight) {
  double longest = 0;
  int64_t columns = weight.shape()[1];
  for (int64_t c = 0; c < columns; ++c) {
    double squares = 0;
    for (int64_t i = c; i < weight.size(); i += columns) squares += std::pow(round_to(DType::kBF16, weight[i]), 2);
    longest = std::max(longest, std::sqrt(squares));
  }
  return longest;
}

void turn(const HostTensor& from, HostTensor& to) {
  int64_t rows = from.shape()[0], columns = from.shape()[1];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  auto next = out.begin();
  std::vector<StoredCopies> stored = stored_copies(node);
  for (size_t i = 0; i < in.size(); ++i) {
    Limit limit = limit_of(*in[i]);
    HostTensor made = cast_weight(*in[i], limit.inverse);
    if (stored[i].plain) (next++)->data = made.data;
    if (stored[i].turned) turn(made, *next++);
    (*next++)[0] = double(limit.scale);
    if (stored[i].longest) (*next++)[0] = longest_column(*in[i]);
  }
}

ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  ValueIds outputs;
  std::vector<StoredCopies> stored = stored_copies(node);
  for (size_t i = 0; i < in.size(); ++i) {
    ValueId wide = cast(g, cast(g, in[i], DType::kBF16), DType::kF32);
    ValueId largest = reduce_max(g, maximum(g, wide, neg(g, wide)), {0, 1}, false);
    ValueId limit = maximum(g, largest, constant(g, double(kLeast))), most = constant(g, double(kLargest));
    ValueId made = cast(g, mul(g, wide, div(g, most, limit)), DType::kF8E4M3);
    if (stored[i].plain) outputs.push_back(made);
    if (stored[i].turned) outputs.push_back(transpose(g, made, {1, 0}));
    outputs.push_back(div(g, limit, most));
    if (!stored[i].longest) continue;
    ValueId squares = reduce_sum(g, mul(g, wide, wide), {0}, true);
    outputs.push_back(sqrt(g, reduce_max(g, squares, {0, 1}, false)));
  }
  return outputs;
}

// Each weight is read twice: for its largest element, and for its copies.
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = cost_of_elements<3>(spec, outputs);
  for (const ValueType& type : spec.inputs) cost.bytes += double(num_bytes(type));
  return cost;
}

}  // namespace

namespace op {
constinit const OpDef float8_weights = of_many_tensors({.name = "float8_weights",
                                                        .attrs = kAttrs,
                                                        .infer = infer,
                                                        .no_gradient = "made when all gradients are there",
                                                        .reference = reference,
                                                        .decompose = decompose,
                                                        .cost = cost});
}  // namespace op

std::vector<StoredCopies> stored_copies(const Node& node) {
  std::vector<StoredCopies> stored;
  for (int64_t bits : node.attrs.get_ints("stored"))
    stored.push_back(
        {.plain = (bits & kPlain) != 0, .turned = (bits & kTurned) != 0, .longest = (bits & kLongest) != 0});
  return stored;
}

std::vector<Float8Weight> float8_outputs(const Node& node) {
  std::vector<Float8Weight> weights;
  auto next = node.outputs.begin();
  for (StoredCopies stored : stored_copies(node)) {
    Float8Weight& weight = weights.emplace_back();
    if (stored.plain) weight.plain = *next++;
    if (stored.turned) weight.turned = *next++;
    weight.scale = *next++;
    if (stored.longest) weight.longest = *next++;
  }
  return weights;
}

size_t weight_of_output(const Node& node, ValueId output) {
  std::vector<Float8Weight> weights = float8_outputs(node);
  auto at = std::ranges::find_if(weights, [&](const Float8Weight& weight) {
    return output == weight.plain || output == weight.turned || output == weight.scale || output == weight.longest;
  });
  TOKAMAK_CHECK(at != weights.end(), "no output of this node");
  return size_t(at - weights.begin());
}

std::vector<Float8Weight> float8_weights(GraphBuilder& g, ValueIds weights, std::span<const StoredCopies> stored) {
  std::vector<int64_t> bits;
  for (StoredCopies copies : stored)
    bits.push_back((copies.plain ? kPlain : 0) | (copies.turned ? kTurned : 0) | (copies.longest ? kLongest : 0));
  g.add(op::float8_weights, std::move(weights), {{"stored", std::move(bits)}});
  return float8_outputs(g.graph().nodes().back());
}

}  // namespace tokamak
