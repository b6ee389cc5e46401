#include "autodiff/differentiate.h"

#include "base/error.h"
#include "config/model_config.h"
#include "graph/builder.h"
#include "model/model.h"
#include "ops/interpret.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

TEST(Differentiate, AppendsTheBackwardPhaseOfTheSameGraph) {
  Graph graph = parse(
      "graph g { param w = %0 : f32[2] %1 = mul(%0, %0) : f32[2] %2 = reduce_sum(%1) {dims=[0], keep=false} : f32[] "
      "result loss = %2 }");
  GraphBuilder g(graph);
  ValueId w = graph.find_argument("w");
  ValueIds grads = differentiate(g, graph.find_result("loss"), {&w, 1});
  graph.add_result("grad", grads[0]);
  verify(graph);
  for (size_t n = 2; n < graph.nodes().size(); ++n) EXPECT_EQ(graph.nodes()[n].phase, Phase::kBackward);
  EXPECT_EQ(graph.nodes()[0].phase, Phase::kForward);
  EXPECT_EQ(g.phase(), Phase::kForward);
  HostTensor x({DType::kF32, {2}}, {3, -4});
  EXPECT_EQ(interpret(graph, {x}).results[1].data, (std::vector<double>{6, -8}));
}

TEST(Differentiate, GoesOnFromAGradientThatIsGiven) {
  Graph graph =
      parse("graph g { param w = %0 : f32[2] state dy = %1 : f32[2] %2 = mul(%0, %0) : f32[2] result y = %2 }");
  GraphBuilder g(graph);
  ValueId w = graph.find_argument("w");
  ValueIds grads = differentiate(g, graph.find_result("y"), graph.find_argument("dy"), {&w, 1});
  graph.add_result("grad", grads[0]);
  for (size_t n = 1; n < graph.nodes().size(); ++n) EXPECT_EQ(graph.nodes()[n].phase, Phase::kBackward);
  HostTensor x({DType::kF32, {2}}, {3, -4}), dy({DType::kF32, {2}}, {10, 100});
  EXPECT_EQ(interpret(graph, {x, dy}).results[1].data, (std::vector<double>{60, -800}));
}

TEST(Differentiate, GivesNoValueForWhatDoesNotMatter) {
  Graph graph = parse(
      "graph g { param w = %0 : f32[] param v = %1 : f32[] input ids = %2 : i32[] %3 = exp(%0) : f32[] result loss = "
      "%3 }");
  GraphBuilder g(graph);
  ValueIds wrt{0, 1, 2};
  ValueIds grads = differentiate(g, graph.find_result("loss"), wrt);
  EXPECT_NE(grads[0], kNoValue);
  EXPECT_EQ(grads[1], kNoValue);
  EXPECT_EQ(grads[2], kNoValue);
}

// A weight that is rounded to a whole number has no slope there.
TEST(Differentiate, EndsAtIntegers) {
  Graph graph = parse(R"(graph g {
    param w = %0 : f32[2]
    %1 = cast(%0) {to="i32"} : i32[2]
    %2 = cast(%1) {to="f32"} : f32[2]
    %3 = mul(%0, %2) : f32[2]
    %4 = reduce_sum(%3) {dims=[0], keep=false} : f32[]
    result loss = %4
  })");
  GraphBuilder g(graph);
  ValueId w = 0;
  graph.add_result("grad", differentiate(g, graph.find_result("loss"), {&w, 1})[0]);
  EXPECT_EQ(interpret(graph, {HostTensor({DType::kF32, {2}}, {2.5, -4.25})}).results[1].data,
            (std::vector<double>{2, -4}));
}

TEST(Differentiate, RefusesAnotherLossAndOpsWithoutGradient) {
  Graph graph = parse(
      "graph g { param w = %0 : f32[2] %1 = less(%0, %0) : f32[2] %2 = reduce_sum(%1) {dims=[0], keep=false} : f32[] "
      "result loss = %2 }");
  GraphBuilder g(graph);
  ValueId w = 0;
  expect_user_error([&] { differentiate(g, w, {&w, 1}); }, {"[differentiate] expected a scalar f32 loss, got f32[2]"});
  expect_user_error(
      [&] {
        differentiate(g, graph.find_result("loss"), {&w, 1});
      },
      {"[less] has no gradient (piecewise constant)"});
}

TEST(Differentiate, RefusesOutputsThatGradientsLeaveOut) {
  Graph graph = parse(R"(graph g {
  param w = %0 : f32[2,3]
  input gain = %1 : f32[3]
  %2, %3, %4 = layer_norm(%0, %1) {eps=1e-05} : f32[2,3], f32[2,1], f32[2,1]
  %5 = reduce_sum(%3) {dims=[0,1], keep=false} : f32[]
  result loss = %5
})");
  GraphBuilder g(graph);
  ValueId w = 0;
  EXPECT_THROW(differentiate(g, graph.find_result("loss"), {&w, 1}), InternalError);
}

struct Variant {
  std::string name;
  ModelConfig model;
};

// Every family as it is where only its sizes are said, and what GPT-2 has besides.
std::vector<Variant> variants() {
  ModelConfig tiny{.layers = 2, .heads = 2, .width = 8, .context = 5, .vocab = 13};
  std::vector<Variant> all;
  for (const ModelFamily* family : model_families())
    for (double dropout : {0.0, 0.2}) {
      Variant& v = all.emplace_back(Variant{std::string(family->name) + (dropout > 0 ? "_dropout" : ""), tiny});
      v.model.family = family->name, v.model.dropout = dropout;
    }
  for (bool tied : {true, false}) {
    Variant& v = all.emplace_back(Variant{tied ? "gpt2_no_bias" : "gpt2_untied_no_bias_dropout", tiny});
    v.model.bias = false, v.model.tie_weights = tied, v.model.dropout = tied ? 0 : 0.3;
  }
  return all;
}

class ModelGradient : public ::testing::TestWithParam<Variant> {};

// A few elements of every parameter of a whole model. The dropped elements are fixed by rng, so the loss is as smooth
// as without dropout.
TEST_P(ModelGradient, EqualsFiniteDifferences) {
  const ModelConfig& model = GetParam().model;
  Graph forward = forward_graph("forward", model, 2, model.context, false);
  verify(forward);

  Graph whole = forward;
  GraphBuilder b(whole);
  ValueIds parameters;
  std::vector<size_t> places;  // of the parameters among the arguments
  for (size_t i = 0; i < forward.arguments().size(); ++i) {
    if (forward.arguments()[i].kind != Argument::Kind::kParameter) continue;
    parameters.push_back(forward.arguments()[i].value);
    places.push_back(i);
  }
  ValueIds grads = differentiate(b, whole.find_result("loss"), parameters);
  for (ValueId grad : grads) whole.add_result("grad", grad);
  verify(whole);

  std::vector<HostTensor> arguments = random_arguments(forward, 3, model.vocab);
  std::vector<HostTensor> results = interpret(whole, arguments).results;
  auto loss = [&] { return interpret(forward, arguments).results[0][0]; };
  constexpr double kStep = 1e-4;
  for (size_t p = 0; p < parameters.size(); ++p) {
    HostTensor& x = arguments[places[p]];
    ASSERT_EQ(x.shape(), results[p + 1].shape());
    for (int64_t i = int64_t(p) % 3; i < x.size(); i += x.size() / 3 + 1) {
      double old = x[i];
      x[i] = old + kStep;
      double above = loss();
      x[i] = old - kStep;
      double below = loss();
      x[i] = old;
      double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(results[p + 1][i], expected, 1e-6 * std::max(1.0, std::fabs(expected)))
          << forward.arguments()[places[p]].name << "[" << i << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, ModelGradient, ::testing::ValuesIn(variants()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tokamak::test
