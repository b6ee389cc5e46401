// classifier(x (R, C), W (V, C), targets i32 (R), dloss f32 (R)) -> losses f32 (R), dx (R, C), dW f32 (V, C), scratch
// (chunk, V): the rows of cross_entropy(x W^T, targets) over the first `classes` columns, and their gradients given
// those of the losses, with a soft cap where there are its attributes. It exists so that logits never stand in memory
// for more than `chunk` rows: dloss is known before the forward pass, so each chunk goes forward and backward at once.
// Logits and their gradient have x's type; dW sums over the chunks in f32. Row r's gradient of the logits is left in
// row r % chunk of scratch, of which nobody need know more than that it is there: as an output it is part of the memory
// plan. Four more inputs, x and W in other formats and a scale f32[] of each, are what the logits are computed from.
// Three more, W transposed (C, V) in that format, and f32[] a scale and its inverse, are for the gradients: dlogits
// times the inverse become e5m2, left in one more output (chunk, V), and dx and dW are computed from operands of eight
// bits; scratch has the logits then.

#include "ops/classifier.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/cross_entropy.h"
#include "ops/interpret.h"
#include "ops/matmul.h"
#include "ops/matmul_formats.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/softcap.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {
    {"chunk"}, {"classes"}, {"softcap", false}, {"softcap_shift", false}, {"softcap_width", false}, {"tf32", false}};

bool has_narrow_gradient(size_t inputs) { return inputs == 11; }

// Of the logits, where they have their own.
void check_operands(const NodeSpec& spec) {
  if (spec.inputs.size() == 4) return;
  if (spec.inputs.size() != 8 && !has_narrow_gradient(spec.inputs.size()))
    user_error("[classifier] expected 4, 8 or 11 inputs, got {}", spec.inputs.size());
  for (size_t i : {size_t(0), size_t(1)}) {
    const ValueType &operand = spec.inputs[4 + i], &scale = spec.inputs[6 + i];
    if (operand.shape != spec.inputs[i].shape || !is_float(operand.dtype) || scale != ValueType{DType::kF32, {}})
      user_error("[classifier] expected an operand of the logits {} and a scale f32[], got {} and {}",
                 to_string(spec.inputs[i].shape), to_string(operand), to_string(scale));
  }
  if (!has_narrow_gradient(spec.inputs.size())) return;
  const ValueType &weight = spec.inputs[5], &turned = spec.inputs[8], scale{DType::kF32, {}};
  if (turned != ValueType{weight.dtype, {weight.shape[1], weight.shape[0]}} || spec.inputs[9] != scale ||
      spec.inputs[10] != scale)
    user_error("[classifier] expected {} transposed, a scale f32[] and its inverse, got {}, {} and {}",
               to_string(weight), to_string(turned), to_string(spec.inputs[9]), to_string(spec.inputs[10]));
}

ValueTypes infer(const NodeSpec& spec) {
  const ValueType &x = spec.inputs[0], &weight = spec.inputs[1], &targets = spec.inputs[2], &dloss = spec.inputs[3];
  bool matrices = x.shape.size() == 2 && weight.shape.size() == 2 && x.shape[1] == weight.shape[1];
  if (!matrices || !is_float(x.dtype) || weight.dtype != x.dtype)
    user_error("[classifier] expected x (R, C) and a weight (V, C) of one float type, got {} and {}", to_string(x),
               to_string(weight));
  int64_t rows = x.shape[0], vocab = weight.shape[0];
  if (targets != ValueType{DType::kI32, {rows}} || dloss != ValueType{DType::kF32, {rows}})
    user_error("[classifier] expected targets i32[{}] and dloss f32[{}], got {} and {}", rows, rows, to_string(targets),
               to_string(dloss));
  int64_t classes = spec.attrs.get_int("classes"), chunk = spec.attrs.get_int("chunk");
  if (classes < 1 || classes > vocab) user_error("[classifier] expected 1 to {} classes, got {}", vocab, classes);
  if (chunk < 1 || chunk > rows) user_error("[classifier] expected chunks of 1 to {} rows, got {}", rows, chunk);
  check_operands(spec);
  ValueTypes outputs{dloss, x, {DType::kF32, weight.shape}, {x.dtype, {chunk, vocab}}};
  if (has_narrow_gradient(spec.inputs.size())) outputs.push_back({DType::kF8E5M2, {chunk, vocab}});
  return outputs;
}

// Logits become their gradient, in place; returns the loss.
double loss_of_row(std::span<double> row, int64_t classes, int64_t target, double dloss, const Softcap& cap,
                   DType dtype) {
  if (target >= classes) user_error("[classifier] expected targets below {}, got {}", classes, target);
  auto valid = row.first(size_t(classes));
  double top = softcap(*std::max_element(valid.begin(), valid.end()), cap), sum = 0;
  for (double logit : valid) sum += std::exp(softcap(logit, cap) - top);
  double lse = top + std::log(sum), loss = target < 0 ? 0 : lse - softcap(row[size_t(target)], cap);
  for (size_t c = 0; c < row.size(); ++c) {
    double p = int64_t(c) < classes ? std::exp(softcap(row[c], cap) - lse) : 0;
    double dcapped = (p - (int64_t(c) == target ? 1 : 0)) * dloss;
    row[c] = target < 0 ? 0 : round_to(dtype, dcapped * softcap_slope(row[c], cap));
  }
  return loss;
}

// Gradients become e5m2, counted in 1 / inverse.
void narrow_row(std::span<double> gradients, double inverse, double* narrow) {
  for (double& gradient : gradients) *narrow++ = gradient = round_to(DType::kF8E5M2, gradient * inverse);
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  const HostTensor &x = *in[0], &weight = *in[1], &targets = *in[2], &dloss = *in[3];
  HostTensor &losses = out[0], &dx = out[1], &dweight = out[2], &scratch = out[3];
  bool own = in.size() > 4, is_narrow = has_narrow_gradient(in.size());
  const HostTensor &a = own ? *in[4] : x, &b = own ? *in[5] : weight;
  double scale = own ? (*in[6])[0] * (*in[7])[0] : 1;
  double dx_scale = is_narrow ? (*in[9])[0] * (*in[7])[0] : 1,
         dweight_scale = is_narrow ? (*in[9])[0] * (*in[6])[0] : 1;
  int64_t rows = x.shape()[0], width = x.shape()[1], vocab = weight.shape()[0];
  int64_t chunk = node.attrs.get_int("chunk"), classes = node.attrs.get_int("classes");
  Softcap cap = softcap_of(node.attrs);
  std::fill(dx.data.begin(), dx.data.end(), 0.0);
  std::fill(dweight.data.begin(), dweight.data.end(), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    std::span<double> row(&scratch[r % chunk * vocab], size_t(vocab));
    for (int64_t v = 0; v < vocab; ++v) {
      double sum = 0;
      for (int64_t c = 0; c < width; ++c) sum += a[r * width + c] * b[v * width + c];
      row[size_t(v)] = round_to(x.type.dtype, scale * sum);
    }
    std::vector<double> gradients(row.begin(), row.end());
    losses[r] = loss_of_row(gradients, classes, int64_t(targets[r]), dloss[r], cap, x.type.dtype);
    if (is_narrow)
      narrow_row(gradients, (*in[10])[0], &out[4][r % chunk * vocab]);
    else
      std::copy(gradients.begin(), gradients.end(), row.begin());
    for (int64_t v = 0; v < vocab; ++v)
      for (int64_t c = 0; c < width; ++c) {
        dx[r * width + c] += dx_scale * gradients[size_t(v)] * (is_narrow ? b : weight)[v * width + c];
        dweight[v * width + c] += dweight_scale * gradients[size_t(v)] * (is_narrow ? a : x)[r * width + c];
      }
  }
}

// What is left in scratch: the rows of the last, possibly smaller chunk, then what the one before it had below those.
ValueId last_chunk(GraphBuilder& g, ValueId dlogits, int64_t chunk) {
  int64_t rows = g.shape(dlogits)[0], rest = rows % chunk;
  if (rest == 0) return chunk == rows ? dlogits : slice(g, dlogits, 0, rows - chunk, chunk);
  return concat(g, {slice(g, dlogits, 0, rows - rest, rest), slice(g, dlogits, 0, rows - chunk, chunk - rest)}, 0);
}

// a b^T, or a^T b, of operands with scales, in `result`.
ValueId scaled_product(GraphBuilder& g, ValueId a, ValueId b, ValueId a_scale, ValueId b_scale, DType result,
                       bool trans_a = false) {
  Attrs attrs{{"trans_a", trans_a}, {"trans_b", !trans_a}};
  set_formats(attrs, {format_of(g.type(a).dtype), format_of(g.type(b).dtype), DType::kF32, result});
  return g.add1(op::matmul, {a, b, a_scale, b_scale}, attrs);
}

ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  ValueId x = in[0], weight = in[1], targets = in[2], dloss = in[3];
  Attrs classes{{"classes", node.attrs.get_int("classes")}};
  set_softcap(classes, softcap_of(node.attrs));
  DType type = g.type(x).dtype;
  ValueId logits =
      in.size() > 4 ? scaled_product(g, in[4], in[5], in[6], in[7], type) : matmul(g, x, weight, false, true);
  ValueIds forward = g.add(op::cross_entropy, {logits, targets}, classes);
  ValueId dlogits = g.add1(op::cross_entropy_grad, {logits, targets, forward[1], dloss}, classes);
  int64_t chunk = node.attrs.get_int("chunk");
  if (!has_narrow_gradient(in.size()))
    return {forward[0], matmul(g, dlogits, weight), cast(g, matmul(g, dlogits, x, true, false), DType::kF32),
            last_chunk(g, dlogits, chunk)};
  ValueId narrow = cast(g, mul(g, cast(g, dlogits, DType::kF32), in[10]), DType::kF8E5M2);
  ValueId dx = scaled_product(g, narrow, in[8], in[9], in[7], type);
  ValueId dweight = scaled_product(g, narrow, in[4], in[9], in[6], DType::kF32, true);
  return {forward[0], dx, dweight, last_chunk(g, logits, chunk), last_chunk(g, narrow, chunk)};
}

// Three matmuls, and five passes over the logits (written, read by the softmax, written as gradient, read twice). Each
// chunk reads the weight twice, and adds to dW, which the first only writes.
Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  const ValueType &x = spec.inputs[0], &weight = spec.inputs[1];
  auto rows = double(x.shape[0]), width = double(x.shape[1]), vocab = double(weight.shape[0]);
  auto size = double(dtype_bytes(x.dtype));
  double chunks = std::ceil(rows / double(spec.attrs.get_int("chunk")));
  Cost cost;
  cost.flops = 6 * rows * vocab * width;
  cost.bytes = 5 * rows * vocab * size + 3 * rows * width * size + 3 * double(num_bytes(outputs[0])) +
               2 * chunks * double(num_bytes(weight)) + (2 * chunks - 1) * double(num_bytes(outputs[2]));
  // The gradient has eight bits, of the five passes the last three.
  if (has_narrow_gradient(spec.inputs.size())) cost.bytes += 3 * rows * vocab * (1 - size);
  return cost;
}

}  // namespace

namespace op {
constinit const OpDef classifier = {.name = "classifier",
                                    .min_inputs = 4,
                                    .max_inputs = 11,
                                    .attrs = kAttrs,
                                    .infer = infer,
                                    .no_gradient = "it holds the gradients of the loss already",
                                    .reference = reference,
                                    .decompose = decompose,
                                    .cost = cost,
                                    .autocast = Autocast::kLow,
                                    .low_inputs = 0b0011};
}  // namespace op

}  // namespace tokamak
