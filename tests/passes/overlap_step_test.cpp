// Whole training steps with overlap and without it: the same bits on every rank, with every pass behind it.
#include "config/mesh_config.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"
#include "tests/passes/training_step.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

#include <array>

namespace tokamak {
namespace {

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

// The step as all passes leave it.
Graph compiled(Graph step, PassContext context, bool overlaps) {
  if (!overlaps) context.options.disable_passes = {"overlap"};
  run_passes(step, PassStage::kStep, context);
  return step;
}

TEST(Overlap, WholeStepsHaveTheSameBits) {
  ModelConfig model{.layers = 3, .heads = 4, .width = 16, .context = 8, .vocab = 24};
  int moved = 0;
  for (auto [data, context, tensor, zero] : {std::array{1, 1, 2, 0},
                                             {1, 1, 4, 0},
                                             {2, 1, 2, 0},
                                             {2, 1, 2, 1},
                                             {2, 1, 2, 3},
                                             {1, 2, 2, 0},
                                             {2, 2, 2, 2},
                                             {1, 2, 1, 0},
                                             {2, 2, 1, 3},
                                             {2, 1, 1, 0}})
    for (double slowness : {0.01, 1.0, 30.0}) {
      SCOPED_TRACE(fmt::format("data {} x context {} x tensor {}, ZeRO {}, {}", data, context, tensor, zero, slowness));
      MeshConfig config{.data = data, .context = context, .tensor = tensor, .zero = zero};
      Graph step = test::step_of(model);
      PassContext pass_context = context_of(config, slowness);
      Graph got = compiled(step, pass_context, true), expected = compiled(step, pass_context, false);
      moved += print(got) != print(expected);
      auto arguments = test::arguments_of_ranks(expected, pass_context.mesh, test::step_arguments(step));
      ASSERT_EQ(test::find_difference(expected, got, pass_context.mesh, arguments), "");
    }
  EXPECT_GE(moved, 15);
}

}  // namespace
}  // namespace tokamak
