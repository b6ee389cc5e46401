// cross_entropy(logits (R, V), targets i32 (R)) -> loss (R), lse (R): lse - logits[target] over the first `classes`
// columns; the others are padding and count as minus infinity. A negative target (no label) has loss and gradient 0.
// With the attributes of a soft cap (ops/softcap.h) the logits are capped before, and so is their gradient's way back.

#include "ops/cross_entropy.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/sharding_rules.h"
#include "ops/softcap.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"classes"}, {"softcap", false}, {"softcap_shift", false}, {"softcap_width", false}};

int64_t require_shapes(const NodeSpec& spec) {
  const Shape &logits = spec.inputs[0].shape, &targets = spec.inputs[1].shape;
  int64_t classes = spec.attrs.get_int("classes");
  if (logits.size() != 2 || targets != Shape{logits[0]} || spec.inputs[1].dtype != DType::kI32)
    user_error("[{}] expected logits (R, V) and i32 targets (R), got {} and {}", spec.op.name,
               to_string(spec.inputs[0]), to_string(spec.inputs[1]));
  if (classes < 1 || classes > logits[1])
    user_error("[{}] expected 1 to {} classes, got {}", spec.op.name, logits[1], classes);
  return logits[0];
}

ValueTypes infer(const NodeSpec& spec) {
  ValueType row{DType::kF32, {require_shapes(spec)}};
  return {row, row};
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  const HostTensor &logits = *in[0], &targets = *in[1];
  int64_t classes = node.attrs.get_int("classes"), cols = logits.shape()[1];
  Softcap cap = softcap_of(node.attrs);
  std::vector<double> row(static_cast<size_t>(classes));
  for (int64_t r = 0; r < targets.size(); ++r) {
    for (int64_t c = 0; c < classes; ++c) row[size_t(c)] = softcap(logits[r * cols + c], cap);
    double top = *std::max_element(row.begin(), row.end()), sum = 0;
    for (double logit : row) sum += std::exp(logit - top);
    out[1][r] = top + std::log(sum);
    if (targets[r] >= double(classes))
      user_error("[cross_entropy] expected targets below {}, got {}", classes, targets[r]);
    out[0][r] = targets[r] < 0 ? 0 : out[1][r] - row[size_t(targets[r])];
  }
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// (R, V) with everything from `classes` on masked to `padding`.
ValueId masked(GraphBuilder& g, ValueId all, ValueId column, int64_t classes, double padding) {
  if (classes == g.shape(all)[1]) return all;
  ValueId valid = less(g, column, constant(g, double(classes)));
  return select(g, valid, all, constant(g, padding));
}

ValueId as_column(GraphBuilder& g, ValueId row) { return reshape(g, row, {g.shape(row)[0], 1}); }

// The cap rises with the logits: that of the largest and of the target's logit are those of one number a row.
ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  Softcap cap = softcap_of(node.attrs);
  int64_t rows = g.shape(in[0])[0], classes = node.attrs.get_int("classes");
  ValueId column = iota(g, {1, g.shape(in[0])[1]}, 1);
  ValueId logits = masked(g, in[0], column, classes, -kInfinity);
  ValueId capped = cap.cap > 0 ? masked(g, softcap(g, in[0], cap), column, classes, -kInfinity) : logits;
  ValueId top = softcap(g, reduce_max(g, logits, {1}, true), cap);
  ValueId lse = add(g, log(g, reduce_sum(g, exp(g, sub(g, capped, top)), {1}, true)), top);
  ValueId target = as_column(g, in[1]);
  ValueId hit = equal(g, column, target);
  ValueId picked = softcap(g, reduce_sum(g, select(g, hit, in[0], constant(g, 0)), {1}, true), cap);
  ValueId loss = select(g, less(g, target, constant(g, 0)), constant(g, 0), sub(g, lse, picked));
  return {reshape(g, loss, {rows}), reshape(g, lse, {rows})};
}

// Each rank has its part of the classes: (R, V) is (R, ranks, V / ranks), of which the last dim is its own. What has to
// be known of the others, the largest logit and two sums, are numbers a row, so that a rank reads its logits once: it
// takes exp(logit - its own largest), and its sum is scaled when the largest of all is known. That of padding alone,
// minus infinity, has no difference to itself, so it counts as the least number.
ValueIds in_parts(GraphBuilder& g, const Node& node, std::span<const ValueId> in, int64_t ranks) {
  Softcap cap = softcap_of(node.attrs);
  int64_t rows = g.shape(in[0])[0], columns = g.shape(in[0])[1], classes = node.attrs.get_int("classes");
  auto parts = [&](ValueId all) { return reshape(g, all, {rows, ranks, columns / ranks}); };
  ValueId column = iota(g, {1, columns}, 1);
  ValueId logits = masked(g, in[0], column, classes, -kInfinity);
  ValueId capped = cap.cap > 0 ? masked(g, softcap(g, in[0], cap), column, classes, -kInfinity) : logits;
  ValueId least = constant(g, double(std::numeric_limits<float>::lowest()));
  ValueId largest = reduce_max(g, parts(logits), {2}, true);  // (R, ranks, 1)
  ValueId top = softcap(g, select(g, less(g, largest, least), least, largest), cap);
  ValueId sum = reduce_sum(g, exp(g, sub(g, parts(capped), top)), {2}, true);
  ValueId target = as_column(g, in[1]);
  ValueId hit = equal(g, column, target);
  ValueId own = reduce_sum(g, parts(select(g, hit, in[0], constant(g, 0))), {2}, true);

  ValueId top_of_all = reduce_max(g, top, {1}, false);  // (R, 1)
  ValueId scale = exp(g, sub(g, top, reshape(g, top_of_all, {rows, 1, 1})));
  ValueId lse = add(g, log(g, reduce_sum(g, mul(g, sum, scale), {1}, false)), top_of_all);
  ValueId picked = softcap(g, reduce_sum(g, own, {1}, false), cap);
  ValueId loss = select(g, less(g, target, constant(g, 0)), constant(g, 0), sub(g, lse, picked));
  return {reshape(g, loss, {rows}), reshape(g, lse, {rows})};
}

ValueIds gradient(GraphBuilder& g, const Node& node, std::span<const ValueId> dy) {
  TOKAMAK_CHECK(dy[1] == kNoValue, "cross_entropy has no gradient for its second output");
  return {g.add1(op::cross_entropy_grad, {node.inputs[0], node.inputs[1], node.outputs[1], dy[0]}, node.attrs),
          kNoValue};
}

// Rows apart. (Over a cut vocabulary in_parts is what to cut: it needs no more than sums of rows.)
ShardingRule sharding(const NodeSpec& spec, std::span<const ValueType> outputs) {
  ShardingRule rule;
  OperandFactors logits = row_factors(rule, spec.inputs[0].shape), row = {logits[0]};
  rule.inputs.assign(spec.inputs.size(), row);
  rule.inputs[0] = logits;
  for (const ValueType& output : outputs) rule.outputs.push_back(output.shape.size() == 2 ? logits : row);
  return rule;
}

Cost cost(const NodeSpec& spec, std::span<const ValueType> outputs) {
  Cost cost = default_cost(spec, outputs);
  cost.flops = 5 * double(num_elements(spec.inputs[0].shape));
  return cost;
}

// cross_entropy_grad(logits, targets, lse, dloss (R)) -> dlogits: (softmax - one-hot) * dloss, 0 in the padding; with a
// soft cap times its slope, cap / width * (1 - tanh^2).
ValueTypes infer_grad(const NodeSpec& spec) {
  require_shapes(spec);
  return {spec.inputs[0]};
}

void grad_reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  const HostTensor &logits = *in[0], &targets = *in[1], &lse = *in[2], &dloss = *in[3];
  int64_t classes = node.attrs.get_int("classes"), cols = logits.shape()[1];
  Softcap cap = softcap_of(node.attrs);
  for (int64_t r = 0; r < targets.size(); ++r)
    for (int64_t c = 0; c < cols; ++c) {
      double x = logits[r * cols + c], p = c < classes ? std::exp(softcap(x, cap) - lse[r]) : 0;
      double dcapped = targets[r] < 0 ? 0 : (p - (double(c) == targets[r] ? 1 : 0)) * dloss[r];
      out[0][r * cols + c] = dcapped * softcap_slope(x, cap);
    }
}

// What padding has is masked in the logits, or in their probabilities: the same numbers.
enum class Mask : uint8_t { kLogits, kProbabilities };

ValueIds grad_of(GraphBuilder& g, const Node& node, std::span<const ValueId> in, Mask mask) {
  Softcap cap = softcap_of(node.attrs);
  int64_t classes = node.attrs.get_int("classes");
  ValueId column = iota(g, {1, g.shape(in[0])[1]}, 1);
  ValueId t = cap.cap > 0 ? softcap_tanh(g, in[0], cap) : kNoValue;
  ValueId logits = cap.cap > 0 ? mul(g, t, constant(g, cap.cap)) : in[0];
  if (mask == Mask::kLogits) logits = masked(g, logits, column, classes, -kInfinity);
  ValueId target = as_column(g, in[1]);
  ValueId dloss = select(g, less(g, target, constant(g, 0)), constant(g, 0), as_column(g, in[3]));
  ValueId p = exp(g, sub(g, logits, as_column(g, in[2])));
  if (mask == Mask::kProbabilities) p = masked(g, p, column, classes, 0);
  ValueId dcapped = mul(g, sub(g, p, equal(g, column, target)), dloss);
  if (cap.cap == 0) return {dcapped};
  ValueId slope = mul(g, sub(g, constant(g, 1), mul(g, t, t)), constant(g, cap.cap * cap.steepness()));
  return {mul(g, dcapped, slope)};
}

ValueIds grad_decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  return grad_of(g, node, in, Mask::kLogits);
}

// The loss masks logits in another kernel, which would write them for this one.
ValueIds grad_in_parts(GraphBuilder& g, const Node& node, std::span<const ValueId> in, int64_t) {
  return grad_of(g, node, in, Mask::kProbabilities);
}

}  // namespace

namespace op {
constinit const OpDef cross_entropy = {.name = "cross_entropy",
                                       .min_inputs = 2,
                                       .max_inputs = 2,
                                       .attrs = kAttrs,
                                       .infer = infer,
                                       .gradient = gradient,
                                       .reference = reference,
                                       .decompose = decompose,
                                       .cost = cost,
                                       .autocast = Autocast::kFull,
                                       .fusion = Fusion::kComposite,
                                       .sharding = {.rule = sharding, .in_parts = in_parts}};
constinit const OpDef cross_entropy_grad = {.name = "cross_entropy_grad",
                                            .min_inputs = 4,
                                            .max_inputs = 4,
                                            .attrs = kAttrs,
                                            .infer = infer_grad,
                                            .no_gradient = "second derivatives are not needed",
                                            .reference = grad_reference,
                                            .decompose = grad_decompose,
                                            .cost = cost,
                                            .autocast = Autocast::kFull,
                                            .fusion = Fusion::kComposite,
                                            .sharding = {.rule = sharding, .in_parts = grad_in_parts}};
}  // namespace op

ValueId cross_entropy(GraphBuilder& g, ValueId logits, ValueId targets, int64_t classes, const Softcap& softcap) {
  Attrs attrs{{"classes", classes}};
  set_softcap(attrs, softcap);
  return g.add(op::cross_entropy, {logits, targets}, attrs)[0];
}

}  // namespace tokamak
