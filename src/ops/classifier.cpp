// classifier(x (R, C), W (V, C), targets i32 (R), dloss f32 (R)) -> losses f32 (R), dx (R, C), dW f32 (V, C), scratch
// (chunk, V): the rows of cross_entropy(x W^T, targets) over the first `classes` columns, and their gradients given
// those of the losses, with a soft cap where there are its attributes. It exists so that logits never stand in memory
// for more than `chunk` rows: dloss is known before the forward pass, so each chunk goes forward and backward at once.
// Logits and their gradient have x's type; dW sums over the chunks in f32. Row r's gradient of the logits is left in
// row r % chunk of scratch, of which nobody need know more than that it is there: as an output it is part of the memory
// plan. Four more inputs, x and W in other formats and a scale f32[] of each, are what the logits are computed from.

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

// Of the logits, where they have their own.
void check_operands(const NodeSpec& spec) {
  if (spec.inputs.size() == 4) return;
  if (spec.inputs.size() != 8) user_error("[classifier] expected 4 or 8 inputs, got {}", spec.inputs.size());
  for (size_t i : {size_t(0), size_t(1)}) {
    const ValueType &operand = spec.inputs[4 + i], &scale = spec.inputs[6 + i];
    if (operand.shape != spec.inputs[i].shape || !is_float(operand.dtype) || scale != ValueType{DType::kF32, {}})
      user_error("[classifier] expected an operand of the logits {} and a scale f32[], got {} and {}",
                 to_string(spec.inputs[i].shape), to_string(operand), to_string(scale));
  }
}

std::vector<ValueType> infer(const NodeSpec& spec) {
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
  return {dloss, x, {DType::kF32, weight.shape}, {x.dtype, {chunk, vocab}}};
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

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  const HostTensor &x = *in[0], &weight = *in[1], &targets = *in[2], &dloss = *in[3];
  HostTensor &losses = out[0], &dx = out[1], &dweight = out[2], &scratch = out[3];
  bool own = in.size() > 4;
  const HostTensor &a = own ? *in[4] : x, &b = own ? *in[5] : weight;
  double scale = own ? (*in[6])[0] * (*in[7])[0] : 1;
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
    losses[r] = loss_of_row(row, classes, int64_t(targets[r]), dloss[r], cap, x.type.dtype);
    for (int64_t v = 0; v < vocab; ++v)
      for (int64_t c = 0; c < width; ++c) {
        dx[r * width + c] += row[size_t(v)] * weight[v * width + c];
        dweight[v * width + c] += row[size_t(v)] * x[r * width + c];
      }
  }
}

// What is left in scratch: the rows of the last, possibly smaller chunk, then what the one before it had below those.
ValueId last_chunk(GraphBuilder& g, ValueId dlogits, int64_t chunk) {
  int64_t rows = g.shape(dlogits)[0], rest = rows % chunk;
  if (rest == 0) return chunk == rows ? dlogits : slice(g, dlogits, 0, rows - chunk, chunk);
  return concat(g, {slice(g, dlogits, 0, rows - rest, rest), slice(g, dlogits, 0, rows - chunk, chunk - rest)}, 0);
}

ValueId own_logits(GraphBuilder& g, std::span<const ValueId> in) {
  Attrs attrs{{"trans_a", false}, {"trans_b", true}};
  set_formats(attrs,
              {format_of(g.type(in[4]).dtype), format_of(g.type(in[5]).dtype), DType::kF32, g.type(in[0]).dtype});
  return g.add1(op::matmul, {in[4], in[5], in[6], in[7]}, attrs);
}

std::vector<ValueId> decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  ValueId x = in[0], weight = in[1], targets = in[2], dloss = in[3];
  Attrs classes{{"classes", node.attrs.get_int("classes")}};
  set_softcap(classes, softcap_of(node.attrs));
  ValueId logits = in.size() > 4 ? own_logits(g, in) : matmul(g, x, weight, false, true);
  std::vector<ValueId> forward = g.add(op::cross_entropy, {logits, targets}, classes);
  ValueId dlogits = g.add1(op::cross_entropy_grad, {logits, targets, forward[1], dloss}, classes);
  ValueId dx = matmul(g, dlogits, weight), dweight = matmul(g, dlogits, x, true, false);
  return {forward[0], dx, cast(g, dweight, DType::kF32), last_chunk(g, dlogits, node.attrs.get_int("chunk"))};
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
  return cost;
}

}  // namespace

namespace op {
constinit const OpDef classifier = {.name = "classifier",
                                    .min_inputs = 4,
                                    .max_inputs = 8,
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
