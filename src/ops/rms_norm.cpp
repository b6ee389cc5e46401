// RMS normalisation: Zhang & Sennrich, "Root mean square layer normalization" (2019). All are composites. The gain may
// be left out, of the norm and of its gradient.
#include "ops/rms_norm.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/generate.h"
#include "ops/norm_shapes.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <cmath>

namespace tokamak {
namespace {

using Values = ValueIds;
using Inputs = std::span<const ValueId>;
using Tensors = std::span<const HostTensor* const>;

constexpr AttrDef kAttrs[] = {{"eps"}};

// rms_norm(x[, gain]) -> y (in x's type), rstd (..., 1)
ValueTypes infer(const NodeSpec& spec) {
  require_rank(spec);
  if (spec.inputs.size() > 1) require_vector(spec, 1);
  return {spec.inputs[0], {DType::kF32, row_shape(spec.inputs[0].shape)}};
}
void reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  const HostTensor& x = *in[0];
  auto [rows, cols] = rows_cols(x.shape());
  auto gain = [&](int64_t c) { return in.size() > 1 ? (*in[1])[c] : 1.0; };
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t c = 0; c < cols; ++c) squares += x[r * cols + c] * x[r * cols + c];
    double rstd = 1 / std::sqrt(squares / double(cols) + node.attrs.get_double("eps"));
    for (int64_t c = 0; c < cols; ++c) out[0][r * cols + c] = x[r * cols + c] * rstd * gain(c);
    out[1][r] = rstd;
  }
}
Values decompose(GraphBuilder& g, const Node& node, Inputs in) {
  const Shape shape = g.shape(in[0]);
  ValueId squares = reduce_sum(g, mul(g, in[0], in[0]), last_dim(shape), true);
  ValueId mean = mul(g, squares, constant(g, 1.0 / double(shape.back())));
  ValueId rstd = rsqrt(g, add(g, mean, constant(g, node.attrs.get_double("eps"))));
  ValueId y = mul(g, in[0], rstd);
  return {in.size() > 1 ? mul(g, y, in[1]) : y, rstd};
}
Values gradient(GraphBuilder& g, const Node& node, Inputs dy) {
  TOKAMAK_CHECK(dy[1] == kNoValue, "rms_norm has no gradient for rstd");
  ValueId x = node.inputs[0], rstd = node.outputs[1];
  if (node.inputs.size() == 1) return {g.add1(op::rms_norm_grad, {dy[0], x, rstd})};
  return {g.add1(op::rms_norm_grad, {dy[0], x, node.inputs[1], rstd}),
          g.add1(op::rms_norm_grad_gain, {dy[0], x, rstd})};
}

// rms_norm_grad(dy, x, gain, rstd), or (dy, x, rstd) -> dx (in x's type) = rstd (d - x_hat mean(d x_hat)), d = dy gain,
// x_hat = x rstd
ValueTypes infer_grad(const NodeSpec& spec) {
  require_rank(spec);
  require_same(spec, 0, 1);
  if (spec.inputs.size() > 3) require_vector(spec, 2);
  return {spec.inputs[1]};
}
void grad_reference(const Node&, Tensors in, std::span<HostTensor> out) {
  const HostTensor &dy = *in[0], &x = *in[1], &rstd = *in.back();
  auto [rows, cols] = rows_cols(x.shape());
  auto gain = [&](int64_t c) { return in.size() > 3 ? (*in[2])[c] : 1.0; };
  for (int64_t r = 0; r < rows; ++r) {
    double dot = 0;
    for (int64_t c = 0; c < cols; ++c) dot += dy[r * cols + c] * gain(c) * x[r * cols + c] * rstd[r] / double(cols);
    for (int64_t c = 0; c < cols; ++c)
      out[0][r * cols + c] = rstd[r] * (dy[r * cols + c] * gain(c) - x[r * cols + c] * rstd[r] * dot);
  }
}
Values grad_decompose(GraphBuilder& g, const Node&, Inputs in) {
  const Shape shape = g.shape(in[1]);
  ValueId rstd = in.back(), d = in.size() > 3 ? mul(g, in[0], in[2]) : in[0], x_hat = mul(g, in[1], rstd);
  ValueId dot = mul(g, reduce_sum(g, mul(g, d, x_hat), last_dim(shape), true), constant(g, 1.0 / double(shape.back())));
  return {mul(g, sub(g, d, mul(g, x_hat, dot)), rstd)};
}

// rms_norm_grad_gain(dy, x, rstd) -> dgain (f32)
ValueTypes infer_grad_gain(const NodeSpec& spec) {
  require_rank(spec);
  require_same(spec, 0, 1);
  return {{DType::kF32, {spec.inputs[0].shape.back()}}};
}
void grad_gain_reference(const Node&, Tensors in, std::span<HostTensor> out) {
  const HostTensor &dy = *in[0], &x = *in[1], &rstd = *in[2];
  auto [rows, cols] = rows_cols(x.shape());
  for (int64_t c = 0; c < cols; ++c) {
    out[0][c] = 0;
    for (int64_t r = 0; r < rows; ++r) out[0][c] += dy[r * cols + c] * x[r * cols + c] * rstd[r];
  }
}
Values grad_gain_decompose(GraphBuilder& g, const Node&, Inputs in) {
  return {reduce_sum(g, mul(g, in[0], mul(g, in[1], in[2])), leading_dims(g.shape(in[0])), false)};
}

constexpr std::string_view kSecond = "second derivatives are not needed";

}  // namespace

namespace op {
constinit const OpDef rms_norm = {.name = "rms_norm",
                                  .min_inputs = 1,
                                  .max_inputs = 2,
                                  .attrs = kAttrs,
                                  .infer = infer,
                                  .gradient = gradient,
                                  .reference = reference,
                                  .decompose = decompose,
                                  .autocast = Autocast::kFull,
                                  .fusion = Fusion::kComposite,
                                  .sharding = {.rule = rows_rule}};
constinit const OpDef rms_norm_grad = {.name = "rms_norm_grad",
                                       .min_inputs = 3,
                                       .max_inputs = 4,
                                       .infer = infer_grad,
                                       .no_gradient = kSecond,
                                       .reference = grad_reference,
                                       .decompose = grad_decompose,
                                       .autocast = Autocast::kFull,
                                       .fusion = Fusion::kComposite,
                                       .sharding = {.rule = rows_rule}};
constinit const OpDef rms_norm_grad_gain = {.name = "rms_norm_grad_gain",
                                            .min_inputs = 3,
                                            .max_inputs = 3,
                                            .infer = infer_grad_gain,
                                            .no_gradient = kSecond,
                                            .reference = grad_gain_reference,
                                            .decompose = grad_gain_decompose,
                                            .autocast = Autocast::kFull,
                                            .fusion = Fusion::kComposite,
                                            .sharding = {.rule = column_sums_rule}};
}  // namespace op

ValueId rms_norm(GraphBuilder& g, ValueId x, ValueId gain, double eps) {
  Values inputs{x};
  if (gain != kNoValue) inputs.push_back(gain);
  return g.add(op::rms_norm, inputs, {{"eps", eps}})[0];
}

}  // namespace tokamak
