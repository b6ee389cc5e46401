// Training steps of small models, as graphs, and arguments for them.
#pragma once

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "config/model_config.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "model/model.h"
#include "tests/support/random_tensors.h"

#include <cmath>
#include <optional>

namespace tokamak::test {

inline Gradients append_gradients(GraphBuilder& g, ValueId loss) {
  Gradients gradients;
  for (const Argument& argument : g.graph().arguments())
    if (argument.kind == Argument::Kind::kParameter) gradients.parameters.push_back(argument.value);
  gradients.grads = differentiate(g, loss, gradients.parameters);
  return gradients;
}

inline const OptimizerConfig kAdamw{.name = "adamw", .eps = 0.05};

/// A whole training step.
inline Graph step_of(const ModelConfig& model, int64_t batch = 8, bool mask_documents = false,
                     const std::optional<LossScaling>& scaling = {}, const NormPieces& pieces = {}) {
  Graph graph = forward_graph("step", model, batch, model.context, mask_documents);
  GraphBuilder g(graph);
  ValueId loss = graph.find_result("loss");
  Gradients gradients = append_gradients(g, scaling ? scaled_loss(g, loss) : loss);
  append_update(g, gradients, kAdamw, 1, scaling, {}, pieces);
  return graph;
}

/// What it can be run with: a second step, of tokens below 24.
inline std::vector<HostTensor> step_arguments(const Graph& graph) {
  std::vector<HostTensor> arguments = random_arguments(graph, 3, 24);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = graph.arguments()[i].name;
    if (name == "step") arguments[i][0] = 2;
    if (name.starts_with("adam.v.") || name.starts_with("adam8.v_scale.") || name.starts_with("adafactor."))
      for (double& v : arguments[i].data) v = std::fabs(v);
  }
  return arguments;
}

}  // namespace tokamak::test
