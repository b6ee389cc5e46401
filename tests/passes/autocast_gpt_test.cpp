// What autocast makes of a whole step of GPT-2: which type every large value has, and how often anything is cast.
#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "config/model_config.h"
#include "config/optimizer_config.h"
#include "config/precision.h"
#include "model/gpt.h"
#include "passes/autocast.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr int64_t B = 3, T = 8, C = 12;

Graph step_of_gpt(const PassContext& context, double dropout) {
  ModelConfig model{.layers = 2, .heads = 2, .width = C, .context = T, .vocab = 17, .dropout = dropout};
  Graph graph("step");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {B, T}}), targets = g.input("targets", {DType::kI32, {B, T}});
  ValueId rng = dropout > 0 ? g.input("rng", {DType::kI32, {2}}) : kNoValue;
  graph.add_result("loss", gpt_loss(g, model, {tokens, targets, rng}));
  run_passes(graph, PassStage::kForward, context);
  Gradients gradients;
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) gradients.parameters.push_back(argument.value);
  gradients.grads = differentiate(g, graph.find_result("loss"), gradients.parameters);
  append_update(g, gradients, OptimizerConfig());
  run_passes(graph, PassStage::kStep, context);
  return graph;
}

PassContext context_of(Precision precision, bool low_residual) {
  PassContext context;
  context.options.precision = precision;
  context.options.low_residual = low_residual;
  context.options.disable_passes = {"pad_vocab"};
  return context;
}

bool is_activation(const ValueType& type) { return num_elements(type.shape) >= B * T * C; }

// Activations and their gradients, and the weights' gradients, by type: only what nodes outside of the optimizer give.
std::map<DType, int> count_large(const Graph& graph) {
  std::map<DType, int> count;
  for (const Node& node : graph.nodes())
    for (ValueId output : node.outputs)
      if (node.phase != Phase::kUpdate && is_activation(graph.type(output))) ++count[graph.dtype(output)];
  return count;
}

class LowResidual : public testing::TestWithParam<std::tuple<Precision, double>> {};

TEST_P(LowResidual, LeavesNoLargeValueInF32) {
  auto [precision, dropout] = GetParam();
  Graph graph = step_of_gpt(context_of(precision, true), dropout);
  auto count = count_large(graph);
  EXPECT_EQ(count[DType::kF32], 0) << print(graph);
  EXPECT_GT(count[precision == Precision::kBf16 ? DType::kBF16 : DType::kF16], 20);
}
INSTANTIATE_TEST_SUITE_P(Precisions, LowResidual,
                         testing::Combine(testing::Values(Precision::kBf16, Precision::kFp16),
                                          testing::Values(0.0, 0.2)),
                         [](const auto& info) {
                           return std::string(precision_name(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) > 0 ? "_dropout" : "");
                         });

TEST(FullResidual, KeepsTheStreamAndItsGradientInF32) {
  Graph graph = step_of_gpt(context_of(Precision::kBf16, false), 0);
  int stream = 0;
  for (const Node& node : graph.nodes())
    for (ValueId output : node.outputs) stream += graph.type(output) == ValueType{DType::kF32, {B, T, C}};
  // The embeddings, their sum, two residual adds a layer, and as many gradients.
  EXPECT_EQ(stream, 2 + 4 + 5) << print(graph);
}

// Of every matrix: one cast, which forward and backward pass share, and the optimizer.
TEST(Autocast, CastsEveryWeightOnceAStep) {
  for (bool low_residual : {true, false}) {
    Graph graph = step_of_gpt(context_of(Precision::kBf16, low_residual), 0.2);
    auto users = find_users(graph);
    for (const Argument& argument : graph.arguments()) {
      if (argument.kind != Argument::Kind::kParameter || graph.shape(argument.value).size() < 2) continue;
      bool table = argument.name.starts_with("w") && !low_residual;  // embeddings read the f32 tables then
      size_t expected = table && argument.name == "wte.weight" ? 3 : 2;
      EXPECT_EQ(users[size_t(argument.value)].size(), expected) << argument.name << "\n" << print(graph);
    }
  }
}

}  // namespace
}  // namespace tokamak
