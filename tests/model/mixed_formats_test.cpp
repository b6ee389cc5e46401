// A step whose products have several number formats, on the CPU's kernels.
#include "backend/cpu/cpu_backend.h"
#include "ops/matmul_form.h"
#include "passes/format_policy.h"
#include "passes/pass.h"
#include "tests/passes/training_step.h"
#include "tests/support/run_on_cpu.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// How the CPU's kernels differ from the interpreter: the largest difference of any element, relative to 1 or its size.
double difference(const Graph& graph) {
  std::vector<HostTensor> arguments = test::step_arguments(graph);
  Interpretation got = test::run_on_cpu(graph, arguments), want = interpret(graph, arguments);
  double worst = 0;
  for (size_t u = 0; u < want.updates.size(); ++u)
    for (int64_t i = 0; i < want.updates[u].size(); ++i) {
      double expected = want.updates[u][i];
      worst = std::max(worst, std::fabs(got.updates[u][i] - expected) / (1 + std::fabs(expected)));
    }
  return worst;
}

PassContext on_cpu(const MatmulFormats& weight_gradient) {
  PassContext context;
  static_cast<Platform&>(context) = cpu::nominal_platform();
  context.options.precision = Precision::kBf16;
  MatmulFormats bf16 = uniform_formats(NumberFormat::kBf16);
  context.formats = policy_by_use(bf16, bf16, weight_gradient);
  return context;
}

Graph step(const PassContext& context) {
  Graph graph = test::step_of({.layers = 2, .heads = 2, .width = 8, .context = 12, .vocab = 24}, 4);
  run_passes(graph, PassStage::kStep, context);
  return graph;
}

int without_kernel(const Graph& graph, const PassContext& context) {
  int count = 0;
  for (const Node& node : graph.nodes())
    count += node.op->name == "matmul" && !context.kernels->has_kernel(graph, node);
  return count;
}

TEST(MixedFormats, LowProductsWithWideWeightGradientsHaveKernels) {
  PassContext context = on_cpu({NumberFormat::kTf32, NumberFormat::kTf32});
  Graph graph = step(context);
  EXPECT_EQ(without_kernel(graph, context), 0);
  EXPECT_LT(difference(graph), 0.02);
}

// Operands of two types, which not every library has: those run by the reference, never by a kernel that misreads them.
TEST(MixedFormats, OperandsOfTwoTypesAreReadAsTheyAre) {
  PassContext context = on_cpu({NumberFormat::kF32, NumberFormat::kBf16});
  Graph graph = step(context);
  EXPECT_LT(difference(graph), 0.02);
  context = on_cpu({NumberFormat::kF16, NumberFormat::kF16, DType::kF32, DType::kF32});
  graph = step(context);
  EXPECT_EQ(without_kernel(graph, context), 9) << "the CPU has no products of f16";
  EXPECT_LT(difference(graph), 0.02);
}

}  // namespace
}  // namespace tokamak
