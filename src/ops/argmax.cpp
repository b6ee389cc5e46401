// argmax(logits (R, V)) -> index (R), f32 as iota's: the largest of the first `classes` columns; the others are
// padding.

#include "ops/argmax.h"

#include "base/error.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/generate.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/sharding_rules.h"

#include <limits>

namespace tokamak {
namespace {

constexpr AttrDef kAttrs[] = {{"classes"}};

constexpr int64_t kMostClasses = 1 << 24;  // f32 has every whole number up to it

ValueTypes infer(const NodeSpec& spec) {
  const ValueType& logits = spec.inputs[0];
  if (logits.shape.size() != 2 || !is_float(logits.dtype))
    user_error("[argmax] expected logits (R, V), got {}", to_string(logits));
  int64_t classes = spec.attrs.get_int("classes"), most = std::min(logits.shape[1], kMostClasses);
  if (classes < 1 || classes > most) user_error("[argmax] expected 1 to {} classes, got {}", most, classes);
  return {{DType::kF32, {logits.shape[0]}}};
}

void reference(const Node& node, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
  const HostTensor& logits = *in[0];
  int64_t classes = node.attrs.get_int("classes"), cols = logits.shape()[1];
  for (int64_t r = 0; r < logits.shape()[0]; ++r) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c)
      if (logits[r * cols + c] > logits[r * cols + best]) best = c;
    out[0][r] = double(best);
  }
}

// The first of equal ones is that with most columns from it to the end.
ValueIds decompose(GraphBuilder& g, const Node& node, std::span<const ValueId> in) {
  int64_t rows = g.shape(in[0])[0], cols = g.shape(in[0])[1], classes = node.attrs.get_int("classes");
  ValueId column = iota(g, {1, cols}, 1), all = constant(g, double(classes)), logits = in[0];
  if (classes < cols)
    logits = select(g, less(g, column, all), logits, constant(g, -std::numeric_limits<double>::infinity()));
  ValueId is_top = equal(g, logits, reduce_max(g, logits, {1}, true));
  ValueId from_end = reduce_max(g, select(g, is_top, sub(g, all, column), constant(g, 0)), {1}, true);
  return {reshape(g, sub(g, all, from_end), {rows})};
}

// Rows apart: a rank has to see all of one.
ShardingRule sharding(const NodeSpec& spec, std::span<const ValueType>) {
  ShardingRule rule;
  OperandFactors logits = row_factors(rule, spec.inputs[0].shape);
  rule.inputs = {logits};
  rule.outputs = {{logits[0]}};
  return rule;
}

}  // namespace

namespace op {
constinit const OpDef argmax = {.name = "argmax",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .attrs = kAttrs,
                                .infer = infer,
                                .no_gradient = "an index has none",
                                .reference = reference,
                                .decompose = decompose,
                                .autocast = Autocast::kFull,
                                .fusion = Fusion::kComposite,
                                .sharding = {.rule = sharding}};
}  // namespace op

ValueId argmax(GraphBuilder& g, ValueId logits, int64_t classes) {
  return g.add1(op::argmax, {logits}, {{"classes", classes}});
}

}  // namespace tokamak
