#include "autodiff/optimizer.h"

#include "base/error.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "ops/adamw.h"
#include "ops/generate.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tokamak {
namespace {

std::string name_of(GraphBuilder& g, ValueId parameter) { return g.graph().argument_of(parameter)->name; }

// min(1, clip / (norm + 1e-6)), as PyTorch's clip_grad_norm_.
ValueId clip_factor(GraphBuilder& g, ValueId norm, double clip) {
  return minimum(g, constant(g, 1), div(g, constant(g, clip), add(g, norm, constant(g, 1e-6))));
}

// Beyond this a sum of squares counts as overflow; comparing with it is false for NaN as well.
constexpr double kLargestSquares = 3e38;
constexpr double kLargestScale = 4294967296.0;

ValueId scalar_state(GraphBuilder& g, const std::string& name) {
  ValueId known = g.graph().find_argument(name);
  return known == kNoValue ? g.state(name, {DType::kF32, {}}) : known;
}

// The next scale and counters, by whether this step was good. Both sides of a select are finite.
void update_scaler(GraphBuilder& g, ValueId good, const LossScaling& scaling) {
  ValueId scale = scalar_state(g, "scaler.scale"), good_steps = scalar_state(g, "scaler.good_steps");
  ValueId skipped = scalar_state(g, "scaler.skipped"), zero = constant(g, 0), one = constant(g, 1);
  ValueId count = add(g, good_steps, one), goes_on = less(g, count, constant(g, scaling.growth_interval));
  ValueId doubled = minimum(g, mul(g, scale, constant(g, 2)), constant(g, kLargestScale));
  ValueId skipped_now = select(g, good, skipped, add(g, skipped, one));
  ValueId halved = mul(g, scale, constant(g, 0.5));
  g.graph().add_update(scale, select(g, good, select(g, goes_on, scale, doubled), halved));
  g.graph().add_update(good_steps, select(g, good, select(g, goes_on, count, zero), zero));
  g.graph().add_update(skipped, skipped_now);
  g.graph().add_result("loss_scale", scale);
  g.graph().add_result("skipped", skipped_now);
}

// What the update multiplies the gradients by (0: skip it), and the step count after it.
struct Factor {
  ValueId scale, step;
};

Factor append_factor(GraphBuilder& g, const Gradients& gradients, const OptimizerConfig& config, double grad_scale,
                     const std::optional<LossScaling>& scaling) {
  ValueId old_step = g.state("step", {DType::kF32, {}}), squares = sum_squares(g, gradients.grads);
  ValueId scale = constant(g, grad_scale), step = add(g, old_step, constant(g, 1)), good = kNoValue;
  if (scaling) {
    scale = div(g, scale, scalar_state(g, "scaler.scale"));
    good = less(g, squares, constant(g, kLargestSquares));
    step = select(g, good, step, old_step);
  }
  g.graph().add_update(old_step, step);
  ValueId norm = mul(g, sqrt(g, squares), scale);
  g.graph().add_result("grad_norm", norm);
  if (config.clip > 0) scale = mul(g, clip_factor(g, norm, config.clip), scale);
  if (!scaling) return {scale, step};
  update_scaler(g, good, *scaling);
  return {select(g, good, scale, constant(g, 0)), step};
}

}  // namespace

ValueId scaled_loss(GraphBuilder& g, ValueId loss) { return mul(g, loss, scalar_state(g, "scaler.scale")); }

void append_adamw(GraphBuilder& g, const Gradients& gradients, const OptimizerConfig& config, double grad_scale,
                  const std::optional<LossScaling>& scaling) {
  std::vector<std::string> tags = g.tags();
  g.set_tags({"optimizer"});
  ValueId lr = g.input("lr", {DType::kF32, {}});
  auto [scale, step] = append_factor(g, gradients, config, grad_scale, scaling);
  for (size_t i = 0; i < gradients.parameters.size(); ++i) {
    ValueId parameter = gradients.parameters[i];
    const ValueType type = g.type(parameter);
    ValueId m = g.state("adam.m." + name_of(g, parameter), type), v = g.state("adam.v." + name_of(g, parameter), type);
    double decay = type.shape.size() >= 2 ? config.weight_decay : 0.0;
    auto updated = g.add(op::adamw, {parameter, gradients.grads[i], m, v, lr, scale, step},
                         {{"beta1", config.beta1}, {"beta2", config.beta2}, {"decay", decay}, {"eps", config.eps}});
    g.graph().add_update(parameter, updated[0]);
    g.graph().add_update(m, updated[1]);
    g.graph().add_update(v, updated[2]);
  }
  g.set_tags(std::move(tags));
}

void append_accumulation(GraphBuilder& g, const Gradients& gradients) {
  for (size_t i = 0; i < gradients.parameters.size(); ++i) {
    ValueId sum = g.state("grad." + name_of(g, gradients.parameters[i]), g.type(gradients.parameters[i]));
    g.graph().add_update(sum, add(g, sum, gradients.grads[i]));
  }
}

Graph accumulated_update_graph(const std::vector<std::pair<std::string, ValueType>>& parameters,
                               const OptimizerConfig& config, int64_t micro_batches,
                               const std::optional<LossScaling>& scaling) {
  Graph graph("update");
  GraphBuilder g(graph);
  Gradients gradients;
  for (const auto& [name, type] : parameters) {
    gradients.parameters.push_back(g.parameter(name, type));
    gradients.grads.push_back(g.state("grad." + name, type));
  }
  append_adamw(g, gradients, config, 1.0 / double(micro_batches), scaling);
  for (ValueId grad : gradients.grads) graph.add_update(grad, constant(g, 0, g.shape(grad)));
  return graph;
}

}  // namespace tokamak
