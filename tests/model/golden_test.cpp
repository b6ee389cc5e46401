// Whole models against PyTorch: logits, loss, every gradient and ten AdamW steps, on the interpreter and on the CPU
// backend under every setting of the passes. The first tensor that differs is named, in the order of the forward pass.
#include "config/config.h"
#include "tests/model/golden_steps.h"
#include "tests/model/gradient_graph.h"

#include "autodiff/optimizer.h"
#include "graph/builder.h"
#include "tests/support/resolve_first.h"
#include "tests/support/run_on_cpu.h"

namespace tokamak::test {
namespace {

// How far the fp32 goldens themselves are from float64 (bounds in tools/make_goldens.py), and how far our fp32 may be.
struct Tolerance {
  double forward, grad, after, noise;
};
constexpr Tolerance kInterpreter{2e-6, 5e-6, 2e-5, 1e-7};
constexpr Tolerance kFloat{5e-6, 1e-5, 1e-4, 1e-6};
constexpr Tolerance kLow{3e-2, 1e-1, 0, 1e-2};

// Batch 0 and the parameters, padded with zeros to what the graph has.
std::vector<HostTensor> arguments_of(const Golden& golden, const Graph& graph) {
  Batch batch = golden.batch_of(0, 0, golden.batch());
  std::vector<HostTensor> arguments;
  for (const Argument& argument : graph.arguments()) {
    HostTensor& tensor = arguments.emplace_back(graph.type(argument.value));
    std::vector<float> values;
    if (argument.name == "tokens")
      values.assign(batch.tokens.begin(), batch.tokens.end());
    else if (argument.name == "targets")
      values.assign(batch.targets.begin(), batch.targets.end());
    else
      values = golden.floats("param." + argument.name);
    std::copy(values.begin(), values.end(), tensor.data.begin());
  }
  return arguments;
}

void check_gradients(const Golden& golden, const Graph& graph, const std::vector<HostTensor>& results,
                     const Tolerance& t) {
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = graph.results()[i].name;
    std::vector<float> expected = golden.floats(name);
    if (name == "loss") {
      ASSERT_TRUE(close_to(name, results[i].data, expected, t.forward));
    } else if (has_noise(name)) {
      ASSERT_TRUE(close_to(name, without_noise(results[i].data), without_noise(expected), t.grad));
      auto third = int64_t(expected.size() / 3);
      for (int64_t k = third; k < 2 * third; ++k) ASSERT_NEAR(results[i][k], 0, t.noise) << name << "[" << k << "]";
    } else {
      ASSERT_TRUE(close_to(name, results[i].data, expected, t.grad));
    }
  }
}

std::vector<float> logits_on(const Golden& golden, bool cpu) {
  Graph graph("logits");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {golden.batch(), golden.model().context}});
  graph.add_result("logits", logits_of(g, golden.model(), tokens));
  std::vector<HostTensor> arguments = arguments_of(golden, graph);
  std::vector<double> data = (cpu ? run_on_cpu(graph, arguments) : interpret(graph, arguments)).results[0].data;
  return {data.begin(), data.end()};
}

class GoldenTest : public ::testing::TestWithParam<const char*> {
 protected:
  Golden golden_{GetParam()};
};

TEST_P(GoldenTest, HasTheModelsParameters) {
  for (const ParameterInfo& info : model_parameters(golden_.model()))
    EXPECT_EQ(golden_.floats("param." + info.name).size(), size_t(num_elements(info.shape))) << info.name;
}

TEST_P(GoldenTest, InterpreterGivesTheLogits) {
  EXPECT_TRUE(close_to("logits", logits_on(golden_, false), golden_.floats("logits"), kInterpreter.forward));
}

TEST_P(GoldenTest, CpuGivesTheLogits) {
  EXPECT_TRUE(close_to("logits", logits_on(golden_, true), golden_.floats("logits"), kFloat.forward));
}

TEST_P(GoldenTest, InterpreterGivesLossAndGradients) {
  Graph graph = gradient_graph(golden_.model(), golden_.batch(), nullptr);
  check_gradients(golden_, graph, interpret(graph, arguments_of(golden_, graph)).results, kInterpreter);
}

TEST_P(GoldenTest, CpuGivesLossAndGradients) {
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    Graph graph = gradient_graph(golden_.model(), golden_.batch(), &setting.compile);
    check_gradients(golden_, graph, run_on_cpu(graph, arguments_of(golden_, graph)).results, kFloat);
  }
}

TEST_P(GoldenTest, Bf16ComesNear) {
  for (bool on : {true, false}) {
    SCOPED_TRACE(on ? "fused" : "not fused");
    CompileConfig compile = on ? without({}, Precision::kBf16) : all_off(Precision::kBf16);
    Graph graph = gradient_graph(golden_.model(), golden_.batch(), &compile);
    std::vector<HostTensor> arguments = arguments_of(golden_, graph);
    check_gradients(golden_, graph, interpret(graph, arguments).results, kLow);
    check_gradients(golden_, graph, run_on_cpu(graph, arguments).results, kLow);
  }
}

// The step as one graph: forward, gradients, clipping, AdamW.
Graph step_graph(const Golden& golden) {
  Graph graph = gradient_graph(golden.model(), golden.batch(), nullptr);
  GraphBuilder g(graph);
  Gradients gradients;
  for (const ParameterInfo& info : model_parameters(golden.model())) {
    gradients.parameters.push_back(graph.find_argument(info.name));
    gradients.grads.push_back(graph.find_result("grad." + info.name));
  }
  append_update(g, gradients, golden.optimizer());
  return graph;
}

TEST_P(GoldenTest, InterpreterTakesTenSteps) {
  Graph graph = step_graph(golden_);
  std::map<std::string, HostTensor> values;
  for (const Argument& argument : graph.arguments()) values[argument.name] = HostTensor(graph.type(argument.value));
  for (const ParameterInfo& info : model_parameters(golden_.model())) values[info.name] = golden_.parameter(info);
  values["lr"][0] = golden_.optimizer().lr;
  std::vector<float> losses = golden_.floats("losses"), norms = golden_.floats("grad_norms");
  for (int64_t step = 0; step < golden_.steps(); ++step) {
    Batch batch = golden_.batch_of(step, 0, golden_.batch());
    values["tokens"] = to_tensor(batch.tokens, values["tokens"].shape());
    values["targets"] = to_tensor(batch.targets, values["targets"].shape());
    std::vector<HostTensor> arguments;
    for (const Argument& argument : graph.arguments()) arguments.push_back(values[argument.name]);
    Interpretation run = interpret(graph, arguments);
    EXPECT_NEAR(run.results[0][0], losses[size_t(step)], kInterpreter.forward * losses[0]) << "step " << step;
    EXPECT_NEAR(run.results.back()[0], norms[size_t(step)], 4 * kInterpreter.forward * norms[0]) << "step " << step;
    for (size_t u = 0; u < run.updates.size(); ++u)
      values[graph.argument_of(graph.updates()[u].target)->name] = run.updates[u];
  }
  EXPECT_EQ(values["step"][0], double(golden_.steps()));
  for (const ParameterInfo& info : model_parameters(golden_.model())) {
    const std::vector<double>& data = values[info.name].data;
    check_after(golden_, info.name, {data.begin(), data.end()}, kInterpreter.after);
  }
}

RunConfig run_config(const Golden& golden, const Setting& setting) {
  RunConfig config;
  config.model = golden.model();
  config.optimizer = golden.optimizer();
  config.compile = setting.compile;
  config.train.batch = golden.batch() / setting.micro_batches;
  if (setting.micro_batches > 1) config.train.total_batch = golden.batch() * golden.model().context;
  return config;
}

TEST_P(GoldenTest, CpuTakesTenSteps) {
  for (const Setting& setting : settings()) {
    SCOPED_TRACE(setting.name);
    std::unique_ptr<Backend> backend = cpu::make_backend();
    Session session = make_session(run_config(golden_, setting), {}, *backend);
    take_golden_steps(session, golden_, kFloatSteps);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, ::testing::ValuesIn(kGoldens),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tokamak::test
