// Which kernels a GPU runs for a slot's gradients must not depend on how ranks share the states: bits follow from them.
#include "backend/cuda/cuda_backend.h"
#include "config/config.h"
#include "graph/text.h"
#include "train/step_compiler.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tokamak::cuda {
namespace {

// A slot of eight sequences for each of two ranks, or both for one.
RunConfig config_of(int64_t ranks, int64_t zero, bool tied) {
  RunConfig config;
  config.model.layers = 2;
  config.model.heads = 2;
  config.model.width = 128;
  config.model.context = 256;
  config.model.vocab = 5000;
  config.model.tie_weights = tied;
  config.mesh.data = ranks;
  config.mesh.zero = zero;
  config.mesh.slots = 2;
  config.train.batch = 8 * ranks;
  config.train.total_batch = 16 * config.model.context;
  config.compile.precision = Precision::kBf16;
  return config;
}

// What computes with the slot's tokens, with its code, before the ranks' sums.
std::vector<std::string> kernels(const RunConfig& config) {
  const CompiledStep step = compile_step(config, nominal_platform());
  const Graph& graph = step.programs[0].plan.graph;
  std::vector<bool> of_slot(size_t(graph.num_values()));
  for (const char* name : {"tokens", "targets"}) of_slot[size_t(graph.find_argument(name))] = true;
  std::vector<std::string> found;
  for (const Node& node : graph.nodes()) {
    if (node.op->effects || node.phase == Phase::kUpdate) continue;
    if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return of_slot[size_t(v)]; })) continue;
    for (ValueId output : node.outputs) of_slot[size_t(output)] = true;
    std::string text = node.body ? print(*node.body) : std::string(node.op->name);
    for (ValueId input : node.inputs) text += to_string(graph.type(input));
    found.push_back(std::move(text));
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(SameKernels, ComputeASlotWithEveryStageOfZero) {
  for (bool tied : {true, false}) {
    std::vector<std::string> alone = kernels(config_of(1, 0, tied));
    for (int64_t zero : {0, 1, 2, 3}) EXPECT_EQ(kernels(config_of(2, zero, tied)), alone) << "zero " << zero;
  }
}

}  // namespace
}  // namespace tokamak::cuda
