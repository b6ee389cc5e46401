// Rules that leave parameters to other rules, and states of their own shape and type.
#include "autodiff/optimizer.h"
#include "tests/autodiff/run_graph.h"
#include "tests/support/toy_rule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak::test {
namespace {

const OptimizerConfig kConfig{.clip = 0};

// Of a table, a matrix, which lies in memory with a row more, and a vector, from gradients that are inputs.
Graph update_graph(const Optimizer& optimizer) {
  Graph graph("update");
  GraphBuilder g(graph);
  Gradients gradients;
  auto add = [&](const char* name, Role role, const Shape& stored, const Shape& global) {
    ArgumentSpec spec{role, "", global};
    gradients.parameters.push_back(graph.add_argument(Argument::Kind::kParameter, name, {DType::kF32, stored}, spec));
    gradients.grads.push_back(g.input(std::string("in.") + name, {DType::kF32, stored}));
  };
  add("table", Role::kEmbedding, {4, 2}, {4, 2});
  add("w", Role::kMatrix, {3, 2}, {2, 2});
  add("b", Role::kVector, {3}, {3});
  append_update(g, gradients, optimizer);
  verify(graph);
  return graph;
}

Values start() {
  Values values;
  values["table"] = HostTensor({DType::kF32, {4, 2}}, {1, 2, 3, 4, 5, 6, 7, 8});
  values["in.table"] = HostTensor({DType::kF32, {4, 2}}, {1, -1, 2, -2, 3, -3, 4, -4});
  values["w"] = HostTensor({DType::kF32, {3, 2}}, {1, -2, 0.5, 3, 0, 0});
  values["in.w"] = HostTensor({DType::kF32, {3, 2}}, {1, 0, 0, 2, 0, 0});
  values["b"] = HostTensor({DType::kF32, {3}}, {0.25, -1, 2});
  values["in.b"] = HostTensor({DType::kF32, {3}}, {1, -0.5, 0.125});
  values["lr"] = HostTensor({DType::kF32, {}}, {0.1});
  return values;
}

std::vector<std::string> moments(const Graph& graph) {
  std::vector<std::string> names;
  for (const Argument& argument : graph.arguments())
    if (argument.spec.role == Role::kMoment) names.push_back(argument.name);
  return names;
}

TEST(ParameterGroups, EachHasTheStatesOfItsRule) {
  EXPECT_EQ(
      moments(update_graph({kToyRule, kConfig})),
      (std::vector<std::string>{"adam.m.table", "adam.v.table", "toy.m.w", "toy.rows.w", "adam.m.b", "adam.v.b"}));
}

TEST(ParameterGroups, AStateHasItsOwnShapeAndType) {
  Graph graph = update_graph({kToyRule, kConfig});
  ValueId rows = graph.find_argument("toy.rows.w"), m = graph.find_argument("toy.m.w");
  EXPECT_EQ(graph.type(rows), (ValueType{DType::kBF16, {3}}));
  EXPECT_EQ(graph.argument_of(rows)->spec, (ArgumentSpec{Role::kMoment, "w", {2}}))
      << "rows that were added are no state";
  EXPECT_EQ(graph.type(m), (ValueType{DType::kF32, {3, 2}}));
  EXPECT_EQ(graph.argument_of(m)->spec, (ArgumentSpec{Role::kMoment, "w", {2, 2}}));
}

TEST(ParameterGroups, EachIsUpdatedByItsRule) {
  Values by_groups = start(), by_adamw = start();
  run_graph(update_graph({kToyRule, kConfig}), by_groups);
  run_graph(update_graph({adamw_rule, kConfig}), by_adamw);
  for (const char* name : {"table", "b", "adam.m.table", "adam.v.b"})
    EXPECT_EQ(by_groups[name].data, by_adamw[name].data) << name;
  double length = 1 + std::sqrt(1.0 + 64.0);  // m is the gradient, diag(1, 2): m (m^T m) is diag(1, 8)
  EXPECT_NEAR(by_groups["w"][0], 1 - 0.1 * 1 / length, 1e-12);
  EXPECT_NEAR(by_groups["w"][3], 3 - 0.1 * 8 / length, 1e-12);
  EXPECT_EQ(by_groups["toy.rows.w"].data, (std::vector<double>{1, 4, 0}));
}

TEST(ParameterGroups, AllAreLeftWhenAGradientIsNotFinite) {
  Graph graph = update_graph({kToyRule, kConfig});
  Values values = start();
  run_graph(graph, values);
  Values before = values;
  values["in.b"][1] = INFINITY;
  run_graph(graph, values);
  for (const char* name : {"table", "w", "b", "toy.m.w", "toy.rows.w", "adam.m.b"})
    EXPECT_EQ(values[name].data, before[name].data) << name;
}

TEST(ParameterGroups, OfAccumulatedGradientsAsWell) {
  Graph model("model");
  GraphBuilder g(model);
  g.parameter("w", {DType::kF32, {2, 2}}, Role::kMatrix);
  g.parameter("b", {DType::kF32, {3}}, Role::kVector);
  EXPECT_EQ(moments(accumulated_update_graph(model, {kToyRule, kConfig}, 2)),
            (std::vector<std::string>{"toy.m.w", "toy.rows.w", "adam.m.b", "adam.v.b"}));
}

TEST(ParameterGroups, TheOptimizerSaysWhichAreUpdatedFromAllOfThem) {
  Graph graph = update_graph({kToyRule, kConfig});
  auto of = [&](const Optimizer& optimizer, const char* name) {
    return optimizer.updates_whole()(*graph.argument_of(graph.find_argument(name)));
  };
  EXPECT_TRUE(of({kToyRule, kConfig}, "w"));
  EXPECT_FALSE(of({kToyRule, kConfig}, "b")) << "AdamW asks for nothing";
  EXPECT_FALSE(of({kToyRule, kConfig}, "table"));
  EXPECT_FALSE(of(kConfig, "w"));
}

}  // namespace
}  // namespace tokamak::test
