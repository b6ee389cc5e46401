// What is computed again on ranks that divide matrices: tensor ranks send each other again what is not kept.
#include "compile/step_compiler.h"
#include "tests/mesh/train_steps.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

RunConfig tensor_run(int64_t ranks) {
  RunConfig config = tiny_mesh_run();
  config.model = {.layers = 4, .heads = 4, .width = 32, .context = 16, .vocab = 61};
  config.train.batch = 4;
  config.mesh = {.tensor = ranks, .slots = 1};
  return config;
}

TEST(RecomputeOnRanks, GivesTheSameBits) {
  for (Precision precision : {Precision::kFp32, Precision::kBf16})
    for (MeshConfig mesh :
         {MeshConfig{.tensor = 2, .slots = 1}, MeshConfig{.data = 2, .tensor = 2, .zero = 3, .slots = 1},
          MeshConfig{.pipe = 2, .tensor = 2, .slots = 1}}) {
      RunConfig config = tensor_run(2);
      config.compile.precision = precision;
      config.mesh = mesh;
      Outcome kept = train_on_mesh(config);
      for (const char* name : {"selective", "full"}) {
        config.compile.recompute = name;
        EXPECT_EQ(differing(kept, train_on_mesh(config)), "")
            << name << ", pipe " << mesh.pipe << ", data " << mesh.data;
      }
    }
}

// What the forward pass leaves to the backward pass.
int64_t kept_bytes(const Graph& graph) {
  Users users(graph);
  int64_t bytes = 0;
  for (const Node& node : graph.nodes())
    for (ValueId output : node.outputs) {
      auto is_backward = [&](int user) { return graph.nodes()[size_t(user)].phase == Phase::kBackward; };
      bool is_kept = node.phase == Phase::kForward && std::ranges::any_of(users[size_t(output)], is_backward);
      if (is_kept) bytes += num_bytes(graph.type(output));
    }
  return bytes;
}

// Of each block the residual stream alone, of which a rank has a part: B T C / ranks numbers.
TEST(RecomputeOnRanks, KeepsOfABlockARanksPartOfTheResidualStream) {
  for (int64_t ranks : {1, 2}) {
    RunConfig config = tensor_run(ranks);
    config.compile.precision = Precision::kFp32;
    config.compile.recompute = "full";
    auto bytes = [&](int64_t layers) {
      config.model.layers = layers;
      return kept_bytes(compile_step(resolve(config, {}), cpu::nominal_platform(1)).programs[0].plan.graph);
    };
    int64_t part = 4 * config.train.batch * config.model.context * config.model.width / ranks;
    EXPECT_EQ(bytes(16) - bytes(12), 4 * part) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace tokamak::test
