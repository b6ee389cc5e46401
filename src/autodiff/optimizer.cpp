#include "autodiff/optimizer.h"

#include "base/error.h"
#include "ops/ops.h"

namespace tokamak {
namespace {

std::string name_of(GraphBuilder& g, ValueId parameter) { return g.graph().argument_of(parameter)->name; }

// min(1, clip / (norm + 1e-6)), as PyTorch's clip_grad_norm_.
ValueId clip_factor(GraphBuilder& g, ValueId norm, double clip) {
  return minimum(g, constant(g, 1), div(g, constant(g, clip), add(g, norm, constant(g, 1e-6))));
}

}  // namespace

void append_adamw(GraphBuilder& g, const Gradients& gradients, const OptimizerConfig& config, double grad_scale) {
  std::vector<std::string> tags = g.tags();
  g.set_tags({"optimizer"});
  ValueId lr = g.input("lr", {DType::kF32, {}}), old_step = g.state("step", {DType::kF32, {}});
  ValueId step = add(g, old_step, constant(g, 1));
  g.graph().add_update(old_step, step);
  ValueId norm = mul(g, sqrt(g, sum_squares(g, gradients.grads)), constant(g, grad_scale));
  g.graph().add_result("grad_norm", norm);
  ValueId scale = constant(g, grad_scale);
  if (config.clip > 0) scale = mul(g, clip_factor(g, norm, config.clip), scale);
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
                               const OptimizerConfig& config, int64_t micro_batches) {
  Graph graph("update");
  GraphBuilder g(graph);
  Gradients gradients;
  for (const auto& [name, type] : parameters) {
    gradients.parameters.push_back(g.parameter(name, type));
    gradients.grads.push_back(g.state("grad." + name, type));
  }
  append_adamw(g, gradients, config, 1.0 / double(micro_batches));
  for (ValueId grad : gradients.grads) graph.add_update(grad, constant(g, 0, g.shape(grad)));
  return graph;
}

}  // namespace tokamak
