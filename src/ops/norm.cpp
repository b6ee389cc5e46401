// softmax and layer_norm along the last dim, with their gradients. All are composites: decompose() is their meaning.

#include "ops/norm.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/generate.h"
#include "ops/norm_shapes.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

using Values = ValueIds;
using Inputs = std::span<const ValueId>;
using Tensors = std::span<const HostTensor* const>;

constexpr AttrDef kNormAttrs[] = {{"eps"}};

ValueTypes infer_softmax(const NodeSpec& spec) {
  require_rank(spec);
  return {spec.inputs[0]};
}
void softmax_reference(const Node&, Tensors in, std::span<HostTensor> out) {
  auto [rows, cols] = rows_cols(in[0]->shape());
  for (int64_t r = 0; r < rows; ++r) {
    const double* x = &in[0]->data[size_t(r * cols)];
    double top = *std::max_element(x, x + cols), sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += std::exp(x[c] - top);
    for (int64_t c = 0; c < cols; ++c) out[0][r * cols + c] = std::exp(x[c] - top) / sum;
  }
}
Values softmax_decompose(GraphBuilder& g, const Node&, Inputs in) {
  auto dim = last_dim(g.shape(in[0]));
  ValueId e = exp(g, sub(g, in[0], reduce_max(g, in[0], dim, true)));
  return {mul(g, e, div(g, constant(g, 1), reduce_sum(g, e, dim, true)))};  // one division a row
}
Values softmax_gradient(GraphBuilder& g, const Node& node, Inputs dy) {
  return {g.add1(op::softmax_grad, {node.outputs[0], dy[0]})};
}

ValueTypes infer_softmax_grad(const NodeSpec& spec) {
  require_rank(spec);
  require_same(spec, 0, 1);
  return {spec.inputs[0]};
}
void softmax_grad_reference(const Node&, Tensors in, std::span<HostTensor> out) {
  const HostTensor &y = *in[0], &dy = *in[1];
  auto [rows, cols] = rows_cols(y.shape());
  for (int64_t r = 0; r < rows; ++r) {
    double dot = 0;
    for (int64_t i = r * cols; i < (r + 1) * cols; ++i) dot += y[i] * dy[i];
    for (int64_t i = r * cols; i < (r + 1) * cols; ++i) out[0][i] = y[i] * (dy[i] - dot);
  }
}
Values softmax_grad_decompose(GraphBuilder& g, const Node&, Inputs in) {
  ValueId dot = reduce_sum(g, mul(g, in[0], in[1]), last_dim(g.shape(in[0])), true);
  return {mul(g, in[0], sub(g, in[1], dot))};
}

// layer_norm(x, gain[, bias]) -> y (in x's type), mean (..., 1), rstd (..., 1)
ValueTypes infer_layer_norm(const NodeSpec& spec) {
  require_rank(spec);
  for (size_t i = 1; i < spec.inputs.size(); ++i) require_vector(spec, i);
  ValueType row{DType::kF32, row_shape(spec.inputs[0].shape)};
  return {spec.inputs[0], row, row};
}
void layer_norm_reference(const Node& node, Tensors in, std::span<HostTensor> out) {
  const HostTensor& x = *in[0];
  auto [rows, cols] = rows_cols(x.shape());
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < cols; ++c) mean += x[r * cols + c] / double(cols);
    for (int64_t c = 0; c < cols; ++c) variance += std::pow(x[r * cols + c] - mean, 2) / double(cols);
    double rstd = 1 / std::sqrt(variance + node.attrs.get_double("eps"));
    for (int64_t c = 0; c < cols; ++c)
      out[0][r * cols + c] = (x[r * cols + c] - mean) * rstd * (*in[1])[c] + (in.size() > 2 ? (*in[2])[c] : 0);
    out[1][r] = mean;
    out[2][r] = rstd;
  }
}
Values layer_norm_decompose(GraphBuilder& g, const Node& node, Inputs in) {
  auto dim = last_dim(g.shape(in[0]));
  ValueId n_inv = constant(g, 1.0 / double(g.shape(in[0]).back()));
  ValueId mean = mul(g, reduce_sum(g, in[0], dim, true), n_inv);
  ValueId centered = sub(g, in[0], mean);
  ValueId variance = mul(g, reduce_sum(g, mul(g, centered, centered), dim, true), n_inv);
  ValueId rstd = rsqrt(g, add(g, variance, constant(g, node.attrs.get_double("eps"))));
  ValueId y = mul(g, mul(g, centered, rstd), in[1]);
  return {in.size() > 2 ? add(g, y, in[2]) : y, mean, rstd};
}
Values layer_norm_gradient(GraphBuilder& g, const Node& node, Inputs dy) {
  TOKAMAK_CHECK(dy[1] == kNoValue && dy[2] == kNoValue, "layer_norm has no gradient for mean and rstd");
  ValueId x = node.inputs[0], mean = node.outputs[1], rstd = node.outputs[2];
  Values grads{g.add1(op::layer_norm_grad, {dy[0], x, node.inputs[1], mean, rstd})};
  Values params = g.add(op::layer_norm_grad_params, {dy[0], x, mean, rstd});
  grads.insert(grads.end(), params.begin(), params.begin() + int64_t(node.inputs.size()) - 1);
  return grads;
}

// layer_norm_grad(dy, x, gain, mean, rstd) -> dx (in x's type)
ValueTypes infer_layer_norm_grad(const NodeSpec& spec) {
  require_rank(spec);
  require_same(spec, 0, 1);
  require_vector(spec, 2);
  return {spec.inputs[1]};
}
void layer_norm_grad_reference(const Node&, Tensors in, std::span<HostTensor> out) {
  const HostTensor &dy = *in[0], &x = *in[1], &gain = *in[2], &mean = *in[3], &rstd = *in[4];
  auto [rows, cols] = rows_cols(x.shape());
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0, dot = 0;
    for (int64_t c = 0; c < cols; ++c) {
      double d = dy[r * cols + c] * gain[c], x_hat = (x[r * cols + c] - mean[r]) * rstd[r];
      sum += d / double(cols);
      dot += d * x_hat / double(cols);
    }
    for (int64_t c = 0; c < cols; ++c) {
      double x_hat = (x[r * cols + c] - mean[r]) * rstd[r];
      out[0][r * cols + c] = rstd[r] * (dy[r * cols + c] * gain[c] - sum - x_hat * dot);
    }
  }
}
Values layer_norm_grad_decompose(GraphBuilder& g, const Node&, Inputs in) {
  auto dim = last_dim(g.shape(in[0]));
  ValueId n_inv = constant(g, 1.0 / double(g.shape(in[0]).back()));
  ValueId d = mul(g, in[0], in[2]);
  ValueId x_hat = mul(g, sub(g, in[1], in[3]), in[4]);
  ValueId sum = mul(g, reduce_sum(g, d, dim, true), n_inv);
  ValueId dot = mul(g, reduce_sum(g, mul(g, d, x_hat), dim, true), n_inv);
  return {mul(g, sub(g, sub(g, d, sum), mul(g, x_hat, dot)), in[4])};
}

// layer_norm_grad_params(dy, x, mean, rstd) -> dgain, dbias (f32)
ValueTypes infer_layer_norm_grad_params(const NodeSpec& spec) {
  require_rank(spec);
  require_same(spec, 0, 1);
  ValueType type{DType::kF32, {spec.inputs[0].shape.back()}};
  return {type, type};
}
void layer_norm_grad_params_reference(const Node&, Tensors in, std::span<HostTensor> out) {
  const HostTensor &dy = *in[0], &x = *in[1], &mean = *in[2], &rstd = *in[3];
  auto [rows, cols] = rows_cols(x.shape());
  for (int64_t c = 0; c < cols; ++c) {
    out[0][c] = out[1][c] = 0;
    for (int64_t r = 0; r < rows; ++r) {
      out[0][c] += dy[r * cols + c] * (x[r * cols + c] - mean[r]) * rstd[r];
      out[1][c] += dy[r * cols + c];
    }
  }
}
Values layer_norm_grad_params_decompose(GraphBuilder& g, const Node&, Inputs in) {
  auto dims = leading_dims(g.shape(in[0]));
  ValueId x_hat = mul(g, sub(g, in[1], in[2]), in[3]);
  return {reduce_sum(g, mul(g, in[0], x_hat), dims, false), reduce_sum(g, in[0], dims, false)};
}

constexpr std::string_view kSecond = "second derivatives are not needed";

}  // namespace

namespace op {
constinit const OpDef softmax = {.name = "softmax",
                                 .infer = infer_softmax,
                                 .gradient = softmax_gradient,
                                 .reference = softmax_reference,
                                 .decompose = softmax_decompose,
                                 .autocast = Autocast::kFull,
                                 .fusion = Fusion::kComposite,
                                 .sharding = {.rule = rows_rule}};
constinit const OpDef softmax_grad = {.name = "softmax_grad",
                                      .min_inputs = 2,
                                      .max_inputs = 2,
                                      .infer = infer_softmax_grad,
                                      .no_gradient = kSecond,
                                      .reference = softmax_grad_reference,
                                      .decompose = softmax_grad_decompose,
                                      .autocast = Autocast::kFull,
                                      .fusion = Fusion::kComposite,
                                      .sharding = {.rule = rows_rule}};
constinit const OpDef layer_norm = {.name = "layer_norm",
                                    .min_inputs = 2,
                                    .max_inputs = 3,
                                    .attrs = kNormAttrs,
                                    .infer = infer_layer_norm,
                                    .gradient = layer_norm_gradient,
                                    .reference = layer_norm_reference,
                                    .decompose = layer_norm_decompose,
                                    .autocast = Autocast::kFull,
                                    .fusion = Fusion::kComposite,
                                    .sharding = {.rule = rows_rule}};
constinit const OpDef layer_norm_grad = {.name = "layer_norm_grad",
                                         .min_inputs = 5,
                                         .max_inputs = 5,
                                         .infer = infer_layer_norm_grad,
                                         .no_gradient = kSecond,
                                         .reference = layer_norm_grad_reference,
                                         .decompose = layer_norm_grad_decompose,
                                         .autocast = Autocast::kFull,
                                         .fusion = Fusion::kComposite,
                                         .sharding = {.rule = rows_rule}};
constinit const OpDef layer_norm_grad_params = {.name = "layer_norm_grad_params",
                                                .min_inputs = 4,
                                                .max_inputs = 4,
                                                .infer = infer_layer_norm_grad_params,
                                                .no_gradient = kSecond,
                                                .reference = layer_norm_grad_params_reference,
                                                .decompose = layer_norm_grad_params_decompose,
                                                .autocast = Autocast::kFull,
                                                .fusion = Fusion::kComposite,
                                                .sharding = {.rule = column_sums_rule}};
}  // namespace op

ValueId softmax(GraphBuilder& g, ValueId x) { return g.add1(op::softmax, {x}); }

ValueId layer_norm(GraphBuilder& g, ValueId x, ValueId gain, ValueId bias, double eps) {
  Values inputs{x, gain};
  if (bias != kNoValue) inputs.push_back(bias);
  return g.add(op::layer_norm, inputs, {{"eps", eps}})[0];
}

}  // namespace tokamak
