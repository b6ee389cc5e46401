// Whole training steps with overlap_tensor and without it: the same bits on every rank, with every pass behind it.
#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "config/mesh_config.h"
#include "config/model_config.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "model/model.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak {
namespace {

Graph step_of(const ModelConfig& model, int64_t batch) {
  Graph graph = forward_graph("step", model, batch, model.context, false);
  GraphBuilder g(graph);
  Gradients gradients;
  for (const Argument& argument : g.graph().arguments())
    if (argument.kind == Argument::Kind::kParameter) gradients.parameters.push_back(argument.value);
  gradients.grads = differentiate(g, graph.find_result("loss"), gradients.parameters);
  append_update(g, gradients, {.name = "adamw", .eps = 0.05}, 1);
  return graph;
}

// As a GPU's, in which links take as long as so many times what is computed.
PassContext context_of(const MeshConfig& config, double slowness) {
  PassContext context;
  context.mesh = step_mesh(config);
  context.zero = config.zero;
  context.sequence = true;
  context.bucket_mib = 1;
  context.target.streams = 2;
  context.target.link_bandwidth = context.target.f32_flops / (100 * slowness);
  return context;
}

std::vector<Interpretation> run(Graph step, const PassContext& context, bool overlaps, std::string& order) {
  PassContext chosen = context;
  if (!overlaps) chosen.options.disable_passes = {"overlap_tensor"};
  std::vector<HostTensor> arguments = test::random_arguments(step, 3, 24);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = step.arguments()[i].name;
    if (name == "step") arguments[i][0] = 2;
    if (name.starts_with("adam.v."))
      for (double& v : arguments[i].data) v = std::fabs(v);
  }
  run_passes(step, Stage::kStep, chosen);
  for (const Node& node : step.nodes()) order += node.op->name, order += ' ';
  return interpret_ranks(step, context.mesh, test::arguments_of_ranks(step, context.mesh, arguments));
}

TEST(OverlapTensor, WholeStepsHaveTheSameBits) {
  ModelConfig model{.layers = 3, .heads = 4, .width = 16, .context = 8, .vocab = 24};
  int moved = 0;
  for (auto [data, context, tensor, zero] :
       {std::array{1, 1, 2, 0}, {1, 1, 4, 0}, {2, 1, 2, 0}, {2, 1, 2, 1}, {2, 1, 2, 3}, {1, 2, 2, 0}, {2, 2, 2, 2}})
    for (double slowness : {0.01, 1.0, 30.0}) {
      SCOPED_TRACE(fmt::format("data {} x context {} x tensor {}, ZeRO {}, {}", data, context, tensor, zero, slowness));
      MeshConfig config{.data = data, .context = context, .tensor = tensor, .zero = zero};
      Graph step = step_of(model, 8);
      std::string order, expected_order;
      std::vector<Interpretation> got = run(step, context_of(config, slowness), true, order);
      std::vector<Interpretation> expected = run(step, context_of(config, slowness), false, expected_order);
      moved += order != expected_order;
      for (size_t rank = 0; rank < expected.size(); ++rank)
        for (size_t i = 0; i < expected[rank].updates.size(); ++i)
          ASSERT_EQ(got[rank].updates[i].data, expected[rank].updates[i].data) << "rank " << rank << ", update " << i;
    }
  EXPECT_GE(moved, 15);
}

}  // namespace
}  // namespace tokamak
