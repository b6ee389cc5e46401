// sample_token(logits (B, V), position (B), drawn (B), seeds (B, 2), settings (3)) -> token, position, drawn (B).

#include "ops/sample_token.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/sampler.h"

#include <algorithm>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"places"}, {"vocab"}};

ValueTypes infer(const NodeSpec& spec) {
  const ValueType& logits = spec.inputs[0];
  if (logits.shape.size() != 2 || !is_float(logits.dtype))
    user_error("[sample_token] expected logits (B, V), got {}", to_string(logits));
  int64_t vocab = spec.attrs.get_int("vocab");
  if (vocab < 1 || vocab > logits.shape[1])
    user_error("[sample_token] expected a vocabulary of 1 to {}, got {}", logits.shape[1], vocab);
  ValueType rows{DType::kI32, {logits.shape[0]}};
  ValueType expected[] = {logits, rows, rows, {DType::kI32, {logits.shape[0], 2}}, {DType::kF32, {3}}};
  for (size_t i = 1; i < spec.inputs.size(); ++i)
    if (spec.inputs[i] != expected[i])
      user_error("[sample_token] expected input {} to be {}, got {}", i, to_string(expected[i]),
                 to_string(spec.inputs[i]));
  return {rows, rows, rows};
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  int64_t vocab = node.attrs.get_int("vocab"), places = node.attrs.get_int("places");
  const HostTensor &logits = *in[0], &position = *in[1], &drawn = *in[2], &seeds = *in[3], &settings = *in[4];
  SamplingOptions options{settings[0], int64_t(settings[1]), settings[2]};
  for (int64_t b = 0; b < position.size(); ++b) {
    auto row = logits.data.begin() + b * logits.shape()[1];
    std::vector<float> values(row, row + vocab);
    float uniform =
        sampling_uniform(sampling_seed(int32_t(seeds[2 * b]), int32_t(seeds[2 * b + 1])), int64_t(drawn[b]));
    out[0][b] = sample(values, options, uniform);
    out[1][b] = std::min(position[b] + 1, double(places - 1));
    out[2][b] = drawn[b] + 1;
  }
}

// Outputs 1 and 2 may lie where the inputs of those numbers do.
int in_place(const Node&, int output) { return output > 0 ? output : -1; }

}  // namespace

namespace op {
constinit const OpDef sample_token = {.name = "sample_token",
                                      .min_inputs = 5,
                                      .max_inputs = 5,
                                      .attrs = kAttrs,
                                      .infer = infer,
                                      .no_gradient = "only for generation",
                                      .reference = reference,
                                      .in_place = in_place};
}  // namespace op

SampledStep sample_token(GraphBuilder& g, ValueId logits, const SampledStep& before, ValueId seeds, ValueId settings,
                         int64_t vocab, int64_t places) {
  auto out = g.add(op::sample_token, {logits, before.position, before.drawn, seeds, settings},
                   {{"places", places}, {"vocab", vocab}});
  return {out[0], out[1], out[2]};
}

}  // namespace tokamak
