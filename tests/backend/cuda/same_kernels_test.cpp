// Which kernels a GPU runs for a slot's gradients must not depend on how ranks share the states: bits follow from them.
#include "backend/cuda/cuda_backend.h"
#include "compile/compiled_run.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "graph/single_node.h"
#include "graph/text.h"
#include "ops/group.h"
#include "plan/storage.h"
#include "tests/support/resolve_first.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

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

// Whether the node depends on inputs or on what other programs left of them, and not on gradients of other slots alone.
bool is_of_slot(const Graph& graph, int node) {
  std::vector<bool> depends(size_t(graph.num_values()));
  for (const Argument& argument : graph.arguments())
    depends[size_t(argument.value)] = argument.kind == Argument::Kind::kInput ||
                                      argument.spec.role == Role::kResidual || argument.spec.role == Role::kActivation;
  for (int n = 0; n <= node; ++n)
    for (ValueId input : graph.nodes()[size_t(n)].inputs)
      if (depends[size_t(input)])
        for (ValueId output : graph.nodes()[size_t(n)].outputs) depends[size_t(output)] = true;
  return depends[size_t(graph.nodes()[size_t(node)].outputs[0])];
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

// For each use of a parameter the kind of kernel that makes a slot's gradient, of which there is one order of additions
// each, and for a product its operands.
std::set<std::string> gradient_kernels(const std::vector<CompiledStep>& stages) {
  std::set<std::string> found;
  for (const CompiledStep& stage : stages)
    for (const CompiledGraph& program : stage.programs) {
      const Graph& graph = program.plan.graph;
      ValueIds roots = find_roots(graph);
      for (const Update& update : graph.updates()) {
        const Argument& state = *graph.argument_of(update.target);
        int maker = graph.producer(roots[size_t(update.value)]);
        if (state.spec.role != Role::kGradientSum || maker < 0 || !is_of_slot(graph, maker)) continue;
        const Node& node = graph.nodes()[size_t(maker)];
        std::string text(node.op->name);
        if (node.op == &op::fused_matmul && node.outputs.size() == 1) text = kernel_key(graph, node);
        found.insert(state.spec.of + ": " + text);
      }
    }
  return found;
}

TEST(SameKernels, ComputeASlotsGradientsInEveryPipeline) {
  RunConfig alone = config_of(1, 0, true);
  alone.model.layers = 4;
  std::set<std::string> expected = gradient_kernels(compile_run(alone, nominal_platform()).stages);
  EXPECT_GT(expected.size(), 4u * 12);
  for (std::string schedule : {"1f1b", "gpipe", "zero_bubble"})
    for (int64_t pipe : {2, 4}) {
      RunConfig config = alone;
      config.mesh.pipe = pipe;
      config.mesh.schedule = schedule;
      std::set<std::string> found = gradient_kernels(compile_run(config, nominal_platform()).stages), others;
      std::set_symmetric_difference(found.begin(), found.end(), expected.begin(), expected.end(),
                                    std::inserter(others, others.end()));
      EXPECT_EQ(others, std::set<std::string>()) << schedule << " in " << pipe;
    }
}

}  // namespace
}  // namespace tokamak::cuda
