#include "ops/adamw.h"

#include "graph/builder.h"
#include "ops/interpret.h"
#include "tests/ops/harness.h"
#include "tests/support/run_on_cpu.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

Attrs attrs(double decay) { return {{"beta1", 0.9}, {"beta2", 0.95}, {"decay", decay}, {"eps", 1e-8}}; }
Attrs multi_attrs(Shape decayed) {
  Attrs a = attrs(0.1);
  a.set("decayed", std::move(decayed));
  return a;
}

const CaseInput kLr = f32({}, 0.01, 0.02), kScale = f32({}, 0.5, 1), kStep = f32({}, 3, 3);

std::vector<CaseInput> tensor(Shape shape) { return {f32(shape), f32(shape), f32(shape), f32(shape, 0.01, 1)}; }

std::vector<CaseInput> one(Shape shape) {
  std::vector<CaseInput> inputs = tensor(std::move(shape));
  inputs.insert(inputs.end(), {kLr, kScale, kStep});
  return inputs;
}

std::vector<CaseInput> skipped(Shape shape) {
  std::vector<CaseInput> inputs = one(std::move(shape));
  inputs[5] = f32({}, 0, 0);
  return inputs;
}

std::vector<CaseInput> with_grad(std::vector<CaseInput> inputs, size_t grad, DType dtype) {
  inputs[grad].type.dtype = dtype;
  return inputs;
}

std::vector<CaseInput> with_low_states(std::vector<CaseInput> inputs, size_t first) {
  for (size_t i = first; i + 1 < inputs.size(); i += 4)
    inputs[i].type.dtype = DType::kBF16, inputs[i + 1].type.dtype = DType::kBF16;
  return inputs;
}

std::vector<CaseInput> many(std::vector<Shape> shapes) {
  std::vector<CaseInput> inputs{kLr, kScale, kStep};
  for (Shape& shape : shapes)
    for (CaseInput& input : tensor(std::move(shape))) inputs.push_back(std::move(input));
  return inputs;
}

}  // namespace

std::vector<OpCase> adamw_cases() {
  return {
      {"Decayed", &op::adamw, one({3, 5}), attrs(0.1)},
      {"Plain", &op::adamw, one({7}), attrs(0)},
      {"Scalar", &op::adamw, one({}), attrs(0)},
      {"Long", &op::adamw, one({3, 3001}), attrs(0.1)},
      {"LowGradient", &op::adamw, with_grad(one({3, 301}), 1, DType::kBF16), attrs(0.1)},
      {"Skipped", &op::adamw, skipped({3, 301}), attrs(0.1), 0},
      {"LowStates", &op::adamw, with_low_states(one({3, 301}), 2), attrs(0.1), 1e-2},
      {"LowStatesSkipped", &op::adamw, with_low_states(skipped({3, 301}), 2), attrs(0.1), 0},
      {"ManyLowStates", &op::multi_adamw, with_low_states(many({{4, 3}, {5}, {70, 90}}), 5), multi_attrs({1, 0, 1}),
       1e-2},
      {"LowGradients", &op::multi_adamw,
       with_grad(with_grad(many({{4, 3}, {50}, {70, 90}}), 4, DType::kBF16), 12, DType::kF16), multi_attrs({1, 0, 1})},
      {"One", &op::multi_adamw, many({{4, 3}}), multi_attrs({1})},
      {"Many", &op::multi_adamw, many({{4, 3}, {5}, {}, {70, 90}, {2, 1, 3}}), multi_attrs({1, 0, 0, 1, 1})},
  };
}

namespace {

// The first step from zero moments goes lr against the sign of the gradient, whatever its size.
TEST(Adamw, FirstStepIsAsLongAsLr) {
  auto out = evaluate({"", &op::adamw, one({2}), attrs(0.5)}, {{1, 1}, {1e-3, -50}, {0, 0}, {0, 0}, {0.1}, {1}, {1}});
  EXPECT_NEAR(out[0][0], 1 - 0.1 * 0.5 - 0.1, 1e-5);
  EXPECT_NEAR(out[0][1], 1 - 0.1 * 0.5 + 0.1, 1e-5);
  EXPECT_NEAR(out[1][1], -5, 1e-12);
  EXPECT_NEAR(out[2][1], 125, 1e-12);
}

TEST(Adamw, ScaleZeroLeavesEverythingWhateverTheGradient) {
  double inf = HUGE_VAL;
  auto out = evaluate({"", &op::adamw, one({3}), attrs(0.5)},
                      {{1, 2, 3}, {inf, std::nan(""), 1}, {4, 5, 6}, {7, 8, 9}, {0.1}, {0}, {1}});
  EXPECT_EQ(out[0].data, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(out[1].data, (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(out[2].data, (std::vector<double>{7, 8, 9}));
}

// The case's op in simpler ones.
Graph decomposed_graph(const OpCase& c) {
  Graph whole = case_graph(c), graph("decomposed");
  GraphBuilder g(graph);
  ValueIds inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) inputs.push_back(g.input(fmt::format("x{}", i), c.inputs[i].type));
  for (ValueId output : c.op->decompose(g, whole.nodes()[0], inputs))
    graph.add_result(fmt::format("y{}", graph.results().size()), output);
  return graph;
}

// A step changes v by a thousandth of it at most, an eighth of what one bit of bf16 is. Of the reference, of the CPU
// and of the decomposition, of which GPUs make their kernels. Elements differ, since equal ones are rounded alike.
TEST(Adamw, SecondMomentInBf16DoesNotStall) {
  constexpr int64_t kElements = 500;
  constexpr int kSteps = 300;
  Attrs slow{{"beta1", 0.9}, {"beta2", 0.999}, {"decay", 0.0}, {"eps", 1e-8}};
  OpCase adamw{"", &op::adamw, with_low_states(one({kElements}), 2), slow};
  Graph whole = case_graph(adamw), simpler = decomposed_graph(adamw);
  for (auto [graph, on_cpu] : {std::pair(&whole, false), {&whole, true}, {&simpler, false}}) {
    std::vector<HostTensor> values = case_arguments(adamw);
    double mean = 0, expected = 0;
    for (int64_t i = 0; i < kElements; ++i) {
      double share = double(i) / kElements, grad = 0.3 + 0.4 * share;
      values[1][i] = grad;
      values[3][i] = round_to(DType::kBF16, 0.75 + share);
      expected += (grad * grad + (values[3][i] - grad * grad) * std::pow(0.999, kSteps)) / kElements;
    }
    values[5][0] = 1;
    for (int step = 1; step <= kSteps; ++step) {
      values[6][0] = step;
      std::vector<HostTensor> out = on_cpu ? run_on_cpu(*graph, values).results : interpret(*graph, values).results;
      for (size_t part : {0, 1, 2}) values[part == 0 ? 0 : part + 1] = out[part];
    }
    for (double v : values[3].data) mean += v / kElements;
    EXPECT_NEAR(mean, expected, 0.006) << "rounded to the nearest it would be 1.25";
  }
}

TEST(Adamw, RefusesMomentsOfOtherTypes) {
  expect_refused({"", &op::adamw, with_grad(one({3}), 2, DType::kF16), attrs(0)},
                 "expected m and v in f32 or bf16, got f16[3]");
  expect_refused({"", &op::adamw, with_grad(one({3}), 2, DType::kBF16), attrs(0)},
                 "expected m and v of one type, got bf16[3] and f32[3]");
  expect_refused({"", &op::adamw, with_grad(one({3}), 0, DType::kBF16), attrs(0)},
                 "expected param in f32, got bf16[3]");
  expect_refused({"", &op::multi_adamw, with_low_states(many({{3}, {4}}), 9), multi_attrs({1, 1})},
                 "expected m of all tensors of one type, got f32[3] and bf16[4]");
}

TEST(Adamw, RefusesTensorsOfOtherShapes) {
  std::vector<CaseInput> inputs = one({3});
  inputs[2] = f32({4});
  expect_refused({"", &op::adamw, inputs, attrs(0)},
                 "expected param, grad, m and v of one shape, got f32[3] and f32[4]");
  expect_refused({"", &op::multi_adamw, many({{3}}), multi_attrs({1, 1})}, "expected 11 inputs for 2 tensors, got 7");
}

}  // namespace
}  // namespace tokamak::test
