#include "tests/ops/harness.h"

#include "autodiff/differentiate.h"
#include "base/random.h"
#include "exec/collective_kernel.h"
#include "graph/rewriter.h"
#include "graph/text.h"
#include "ops/all_ops.h"
#include "ops/collective.h"
#include "ops/generate.h"
#include "ops/interpret.h"
#include "ops/movement.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "passes/form_groups.h"
#include "tests/support/expect_error.h"
#include "tests/support/random_tensors.h"
#include "tests/support/run_on_cpu.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>

#include <cmath>

namespace tokamak::test {
namespace {

constexpr double kDecomposeTolerance = 1e-9;
constexpr double kStep = 1e-5;  // of finite differences: truncation and rounding are both near 1e-10
constexpr double kGradientTolerance = 1e-7;
constexpr int64_t kMaxElements = 40;  // of one input that are checked by finite differences

HostTensor random_input(const CaseInput& input, uint64_t seed) {
  HostTensor tensor(input.type);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double u = input.low + (input.high - input.low) * double(uniform_float(philox4x32(seed, uint64_t(i))[0]));
    tensor[i] = is_float(input.type.dtype) ? round_to(input.type.dtype, double(float(u))) : std::floor(u);
  }
  if (input.starts) make_starts(tensor);
  return tensor;
}

bool all_f32(const OpCase& c) {
  for (const CaseInput& input : c.inputs)
    if (input.type.dtype != DType::kF32 && input.type.dtype != DType::kI32) return false;
  return true;
}

// The case's node, and as loss its outputs projected on random tensors (the last inputs), one for each, so that no
// gradient stands for another.
struct Projected {
  Graph graph{"projected"};
  ValueIds wrt;                   // the float inputs
  std::vector<size_t> positions;  // their positions among the inputs
  std::vector<HostTensor> arguments;
};

// The sum of all elements of output k times those of another random input.
ValueId project(GraphBuilder& g, size_t k, ValueId output, Projected& p) {
  ValueId w = g.input(fmt::format("w{}", k), g.type(output));
  p.arguments.push_back(random_input({g.type(output)}, 99 + k));
  std::vector<int64_t> dims;
  for (size_t d = 0; d < g.shape(output).size(); ++d) dims.push_back(int64_t(d));
  ValueId product = mul(g, output, w);
  return dims.empty() ? product : reduce_sum(g, product, dims, false);
}

Projected project(const OpCase& c) {
  Projected p;
  p.graph = case_graph(c);
  GraphBuilder g(p.graph);
  p.arguments = case_arguments(c);
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (is_float(c.inputs[i].type.dtype)) {
      p.wrt.push_back(p.graph.arguments()[i].value);
      p.positions.push_back(i);
    }
  ValueIds outputs = p.graph.nodes()[0].outputs;
  outputs.resize(std::min(outputs.size(), c.gradients));
  ValueId loss = kNoValue;
  for (size_t k = 0; k < outputs.size(); ++k) {
    ValueId part = project(g, k, outputs[k], p);
    loss = loss == kNoValue ? part : add(g, loss, part);
  }
  p.graph.add_result("loss", loss);
  return p;
}

double loss_of(const Graph& graph, const std::vector<HostTensor>& arguments) {
  return interpret(graph, arguments).results.back()[0];
}

// The loss with its gradients, which find_fault() compares with finite differences.
struct Differentiated {
  explicit Differentiated(const OpCase& c) : p(project(c)), backward(p.graph) {
    GraphBuilder g(backward);
    grads = differentiate(g, backward.find_result("loss"), p.wrt);
    for (size_t k = 0; k < grads.size(); ++k)
      if (grads[k] != kNoValue) backward.add_result(fmt::format("grad{}", k), grads[k]);
    verify(backward);
  }

  // Where they differ first; empty: nowhere.
  std::string find_fault() {
    std::vector<HostTensor> results = interpret(backward, p.arguments).results;
    size_t next = p.graph.results().size();
    for (size_t k = 0; k < grads.size(); ++k) {
      const HostTensor* grad = grads[k] == kNoValue ? nullptr : &results[next++];
      HostTensor& x = p.arguments[p.positions[k]];
      int64_t stride = std::max<int64_t>(1, x.size() / kMaxElements);
      for (int64_t i = 0; i < x.size(); i += stride) {
        double expected = slope(x[i]), got = grad ? (*grad)[i] : 0.0;
        if (std::fabs(got - expected) > kGradientTolerance * std::max(1.0, std::fabs(expected)))
          return fmt::format("input {}, element {}: {}, expected {}\n{}", p.positions[k], i, got, expected,
                             print(backward));
      }
    }
    return {};
  }

  // Of the loss along one element of the arguments.
  double slope(double& element) {
    double old = element;
    element = old + kStep;
    double above = loss_of(p.graph, p.arguments);
    element = old - kStep;
    double below = loss_of(p.graph, p.arguments);
    element = old;
    return (above - below) / (2 * kStep);
  }

  Projected p;
  Graph backward;
  ValueIds grads;  // of p.wrt
};

// Every op of the graph is one of all_ops(), which coverage_test.cpp goes by.
void expect_listed(const Graph& graph) {
  for (const Node& node : graph.nodes())
    EXPECT_EQ(find_op(node.op->name), node.op) << node.op->name << " is declared in no header of src/ops";
}

class OpTest : public ::testing::TestWithParam<OpCase> {};

TEST_P(OpTest, PrintsAndParsesBack) {
  Graph graph = case_graph(GetParam());
  std::string text = print(graph);
  EXPECT_EQ(print(parse_graph(text, find_op)), text);
}

using Decompose = std::function<ValueIds(GraphBuilder&, const Node&, std::span<const ValueId>)>;

void expect_reference_of(const OpCase& c, const Decompose& decompose) {
  Graph graph = case_graph(c), simpler("simpler");
  GraphBuilder g(simpler);
  ValueIds inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(g.input(fmt::format("x{}", i), c.inputs[i].type));
  ValueIds outputs = decompose(g, graph.nodes()[0], inputs);
  ASSERT_EQ(outputs.size(), graph.results().size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(g.type(outputs[i]), graph.type(graph.results()[i].value));
    simpler.add_result(fmt::format("y{}", i), outputs[i]);
  }
  verify(simpler);
  expect_listed(simpler);
  for (uint64_t seed : {1, 2, 3}) {
    std::vector<HostTensor> arguments = case_arguments(c, seed);
    Interpretation a = interpret(graph, arguments), b = interpret(simpler, arguments);
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_LE(difference(b.results[i], a.results[i]), kDecomposeTolerance) << "output " << i;
  }
}

TEST_P(OpTest, ReferenceEqualsDecomposition) {
  const OpCase& c = GetParam();
  if (c.op->decompose && all_f32(c)) expect_reference_of(c, c.op->decompose);
}

// In as few parts of the last dim of its first input as can be equal, and in one.
TEST_P(OpTest, ReferenceEqualsParts) {
  const OpCase& c = GetParam();
  auto in_parts = c.op->sharding.in_parts;
  if (!in_parts || !all_f32(c)) return;
  int64_t last = c.inputs[0].type.shape.back(), ranks = 2;
  while (last % ranks != 0) ++ranks;
  for (int64_t parts : {int64_t(1), ranks})
    expect_reference_of(c, [&](GraphBuilder& g, const Node& node, std::span<const ValueId> inputs) {
      return in_parts(g, node, inputs, parts);
    });
}

TEST_P(OpTest, GradientEqualsFiniteDifferences) {
  const OpCase& c = GetParam();
  if (!c.op->gradient || !all_f32(c) || !c.smooth) return;
  Differentiated d(c);
  expect_listed(d.backward);
  EXPECT_EQ(d.find_fault(), "");
}

// As it stands, and as the kernel template that form_groups gives it.
TEST_P(OpTest, CpuEqualsReference) {
  const OpCase& c = GetParam();
  if (is_of_ranks(Node{.op = c.op})) GTEST_SKIP() << "needs ranks: tests/exec/collective_kernel_test.cpp";
  Graph plain = case_graph(c), grouped = plain;
  form_groups(grouped, {});
  verify(grouped);
  std::vector<HostTensor> arguments = case_arguments(c);
  Interpretation expected = interpret(plain, arguments);
  for (const Graph* graph : {&plain, &grouped}) {
    Interpretation got = run_on_cpu(*graph, arguments);
    for (size_t i = 0; i < expected.results.size(); ++i)
      EXPECT_LE(difference(got.results[i], expected.results[i]), c.cpu_tolerance) << "output " << i << " of\n"
                                                                                  << print(*graph);
  }
}

std::string case_name(const ::testing::TestParamInfo<OpCase>& info) {
  return std::string(info.param.op->name) + "_" + info.param.name;
}

// An op with two outputs, 2 x and 3 x, whose gradient is given.
OpDef two_outputs(decltype(OpDef::gradient) gradient) {
  return {.name = "two_outputs",
          .infer = [](const NodeSpec& spec) { return ValueTypes(2, spec.inputs[0]); },
          .gradient = gradient,
          .reference =
              [](const Node&, std::span<const HostTensor* const> in, std::span<HostTensor> out) {
                for (int64_t i = 0; i < in[0]->size(); ++i) {
                  out[0][i] = 2 * (*in[0])[i];
                  out[1][i] = 3 * (*in[0])[i];
                }
              }};
}

ValueId weighted_sum(GraphBuilder& g, double a, ValueId x, double b, ValueId y) {
  return add(g, mul(g, constant(g, a), x), mul(g, constant(g, b), y));
}

// The weights tell outputs apart, and elements.
TEST(GradientCheck, FindsGradientsThatAreWrong) {
  using Grads = ValueIds;
  using OutGrads = std::span<const ValueId>;
  auto fault_of = [](decltype(OpDef::gradient) gradient) {
    OpDef op = two_outputs(gradient);
    return Differentiated({"", &op, {f32({5})}}).find_fault();
  };
  EXPECT_EQ(fault_of([](GraphBuilder& g, const Node&, OutGrads dy) -> Grads {
              return {weighted_sum(g, 2, dy[0], 3, dy[1])};
            }),
            "");
  EXPECT_NE(
      fault_of([](GraphBuilder& g, const Node&, OutGrads dy) -> Grads { return {mul(g, constant(g, 2), dy[0])}; }), "")
      << "one output forgotten";
  EXPECT_NE(fault_of([](GraphBuilder& g, const Node&, OutGrads dy) -> Grads {
              return {weighted_sum(g, 3, dy[0], 2, dy[1])};
            }),
            "")
      << "outputs confused";
  EXPECT_NE(fault_of([](GraphBuilder& g, const Node&, OutGrads dy) -> Grads {
              ValueId right = weighted_sum(g, 2, dy[0], 3, dy[1]);
              return {concat(g, {slice(g, right, 0, 1, 4), slice(g, right, 0, 0, 1)}, 0)};
            }),
            "")
      << "elements confused";
}

INSTANTIATE_TEST_SUITE_P(All, OpTest, ::testing::ValuesIn(all_cases()), case_name);

}  // namespace

void PrintTo(const OpCase& c, std::ostream* out) { *out << c.op->name << " " << c.name; }

std::vector<OpCase> all_cases() {
  std::vector<OpCase> all;
  for (auto family : {adamw_cases,
                      adamw8bit_cases,
                      argmax_cases,
                      attention_cases,
                      attention_decode_cases,
                      classifier_cases,
                      collective_cases,
                      context_attention_cases,
                      cross_entropy_cases,
                      dropout_cases,
                      embedding_cases,
                      first_rows_cases,
                      float8_weights_cases,
                      generate_cases,
                      group_cases,
                      matmul_cases,
                      movement_cases,
                      multi_add_cases,
                      multi_cast_cases,
                      norm_cases,
                      packed_gate_cases,
                      pointwise_cases,
                      redistribute_cases,
                      reduce_cases,
                      rms_norm_cases,
                      rotary_cases,
                      row_block_cases,
                      sample_token_cases})
    for (OpCase& c : family()) all.push_back(std::move(c));
  return all;
}

std::vector<OpCase> with_gradients(std::vector<OpCase> cases, const OpDef& op, size_t outputs) {
  for (OpCase& c : cases)
    if (c.op == &op) c.gradients = outputs;
  return cases;
}

Graph case_graph(const OpCase& c) {
  Graph graph("case");
  GraphBuilder g(graph);
  ValueIds inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(g.input(fmt::format("x{}", i), c.inputs[i].type));
  ValueIds outputs = g.add(*c.op, inputs, c.attrs, c.body);
  for (size_t i = 0; i < outputs.size(); ++i) graph.add_result(fmt::format("y{}", i), outputs[i]);
  verify(graph);
  return graph;
}

std::vector<HostTensor> case_arguments(const OpCase& c, uint64_t seed) {
  std::vector<HostTensor> arguments;
  for (size_t i = 0; i < c.inputs.size(); ++i) arguments.push_back(random_input(c.inputs[i], seed * 100 + i));
  return arguments;
}

std::vector<HostTensor> evaluate(const OpCase& c, const std::vector<std::vector<double>>& inputs) {
  std::vector<HostTensor> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) arguments.emplace_back(c.inputs[i].type, inputs[i]);
  return interpret(case_graph(c), arguments).results;
}

void expect_bits_of_decomposition(const OpCase& c) {
  Graph graph = case_graph(c);
  Rewriter rewriter(graph);
  const Node& node = graph.nodes()[0];
  rewriter.replace(node.outputs, node.op->decompose(rewriter.in_place_of(node), node, rewriter.map(node.inputs)));
  Graph simple = rewriter.finish();
  std::vector<HostTensor> arguments = case_arguments(c);
  Interpretation got = run_on_cpu(graph, arguments), expected = run_on_cpu(simple, arguments);
  for (size_t i = 0; i < expected.results.size(); ++i)
    EXPECT_EQ(got.results[i].data, expected.results[i].data) << c.name << ", output " << i;
}

void expect_refused(const OpCase& c, const std::string& piece) {
  expect_user_error([&] { case_graph(c); }, {"[" + std::string(c.op->name) + "]", piece});
}

}  // namespace tokamak::test
