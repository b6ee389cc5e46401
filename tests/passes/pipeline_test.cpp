// The whole pipeline on the whole training step of a tiny GPT-2, in every setting of its options.
#include "autodiff/differentiate.h"
#include "config/model_config.h"
#include "graph/builder.h"
#include "model/gpt.h"
#include "ops/adamw.h"
#include "ops/generate.h"
#include "ops/group_form.h"
#include "ops/matmul.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "passes/live_bytes.h"
#include "passes/pass.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

namespace tokamak {
namespace {

Graph tiny_gpt(double dropout, int64_t B = 2) {
  ModelConfig model;
  model.layers = 2;
  model.heads = 2;
  model.width = 8;
  model.context = 6;
  model.vocab = 11;
  model.dropout = dropout;
  Graph graph("step");
  GraphBuilder g(graph);
  ValueId tokens = g.input("tokens", {DType::kI32, {B, 5}}), targets = g.input("targets", {DType::kI32, {B, 5}});
  ValueId rng = g.input("rng", {DType::kI32, {2}});
  graph.add_result("loss", gpt_loss(g, model, {tokens, targets, rng}));
  return graph;
}

// Gradients, clipping and AdamW.
void add_optimizer(Graph& graph) {
  GraphBuilder g(graph);
  ValueIds parameters;
  for (const Argument& argument : graph.arguments())
    if (argument.kind == Argument::Kind::kParameter) parameters.push_back(argument.value);
  ValueIds grads = differentiate(g, graph.find_result("loss"), parameters);
  ValueId lr = g.input("lr", {DType::kF32, {}}), step = g.state("step_positive", {DType::kF32, {}});
  ValueId next = add(g, step, constant(g, 1)), norm = sqrt(g, sum_squares(g, grads));
  graph.add_update(step, next);
  graph.add_result("norm", norm);
  ValueId scale = minimum(g, constant(g, 1), div(g, constant(g, 1), norm));
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ValueType type = g.type(parameters[i]);
    ValueId m = g.state(fmt::format("m.{}", i), type), v = g.state(fmt::format("v.{}_positive", i), type);
    Attrs attrs{{"beta1", 0.9}, {"beta2", 0.95}, {"decay", type.shape.size() == 2 ? 0.1 : 0.0}, {"eps", 1e-8}};
    auto out = g.add(op::adamw, {parameters[i], grads[i], m, v, lr, scale, next}, attrs);
    graph.add_update(parameters[i], out[0]);
    graph.add_update(m, out[1]);
    graph.add_update(v, out[2]);
  }
}

struct Setting {
  const char* name;
  double dropout = 0;
  double tolerance = 1e-9;
  CompileConfig options;
};
void PrintTo(const Setting& s, std::ostream* os) { *os << s.name; }

class PipelineSetting : public testing::TestWithParam<Setting> {};

TEST_P(PipelineSetting, KeepsLossNormAndUpdates) {
  const Setting& setting = GetParam();
  PassContext context;
  context.options = setting.options;
  context.options.disable_passes.emplace_back("pad_vocab");  // it changes the arguments: pad_vocab_test
  Graph after = tiny_gpt(setting.dropout);
  Graph before = after;
  run_passes(after, PassStage::kForward, context);
  add_optimizer(before);
  add_optimizer(after);
  run_passes(after, PassStage::kStep, context);
  verify(after);
  EXPECT_EQ(print(test::parse(print(after))), print(after));
  test::expect_same_meaning(before, after, setting.tolerance, 3, 11);
}

CompileConfig options(void (*change)(CompileConfig&)) {
  CompileConfig config;
  config.precision = Precision::kFp32;
  change(config);
  return config;
}

const Setting kSettings[] = {
    {"all", 0, 1e-9, options([](CompileConfig&) {})},
    {"dropout", 0.2, 1e-9, options([](CompileConfig&) {})},
    {"no_fusion", 0.2, 1e-9, options([](CompileConfig& c) { c.disable_passes = {"fuse"}; })},
    {"naive_attention", 0.2, 1e-9, options([](CompileConfig& c) { c.disable_passes = {"flash_attention"}; })},
    {"separate_updates", 0, 1e-9, options([](CompileConfig& c) { c.disable_passes = {"fused_optimizer"}; })},
    {"recompute_some", 0.2, 1e-9, options([](CompileConfig& c) { c.memory_budget_gib = 12e3 / 1073741824.0; })},
    {"recompute_all", 0.2, 1e-9, options([](CompileConfig& c) { c.memory_budget_gib = 1e-9; })},
    {"bf16", 0, 0.2, options([](CompileConfig& c) { c.precision = Precision::kBf16; })},
    {"bf16_naive", 0, 0.2, options([](CompileConfig& c) {
       c.precision = Precision::kBf16;
       c.disable_passes = {"flash_attention"};
     })},
};
INSTANTIATE_TEST_SUITE_P(Options, PipelineSetting, testing::ValuesIn(kSettings),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Pipeline, RecomputationLowersThePeak) {
  Graph plain = tiny_gpt(0.2, 16);
  add_optimizer(plain);
  Graph budgeted = plain;
  PassContext context;
  context.options.precision = Precision::kFp32;
  context.options.disable_passes = {"form_groups", "fuse"};
  run_passes(plain, PassStage::kStep, context);
  context.options.memory_budget_gib = 1e-9;
  run_passes(budgeted, PassStage::kStep, context);
  EXPECT_LT(peak_live_bytes(budgeted), peak_live_bytes(plain));
}

// The gradient of tanh is dy (1 - y y). If its 1 made it f32, what the matmul reads (bf16) and what is summed for the
// bias (f32) would be two values, each computed by a kernel of its own.
TEST(Pipeline, AGradientWithAConstantStaysLow) {
  const Shape hidden{2, 3, 16};
  Graph graph("step");
  GraphBuilder g(graph);
  ValueId w1 = g.parameter("w1", {DType::kF32, {8, 16}}), b = g.parameter("b", {DType::kF32, {16}});
  ValueId w2 = g.parameter("w2", {DType::kF32, {16, 4}});
  ValueId y = matmul(g, tanh(g, add(g, matmul(g, g.input("x", {DType::kF32, {2, 3, 8}}), w1), b)), w2);
  ValueId loss = reduce_sum(g, mul(g, y, y), {0, 1, 2}, false);
  graph.add_result("loss", loss);
  ValueIds wrt = {w1, b, w2}, grads = differentiate(g, loss, wrt);
  for (size_t i = 0; i < wrt.size(); ++i) graph.add_update(wrt[i], sub(g, wrt[i], grads[i]));
  PassContext context;
  context.options.precision = Precision::kBf16;
  run_passes(graph, PassStage::kStep, context);
  EXPECT_EQ(test::count_ops(graph, "column"), 1);
  for (const Node& node : graph.nodes()) {
    for (ValueId value : node.outputs) EXPECT_NE(graph.type(value), (ValueType{DType::kF32, hidden})) << print(graph);
    if (node.op->name == "column") {
      EXPECT_EQ(node.outputs.size(), 2u) << print(graph);
    }
  }
}

TEST(Pipeline, GivesTheSameTextEveryTime) {
  auto compile = [] {
    Graph graph = tiny_gpt(0.2);
    PassContext context;
    context.options.precision = Precision::kFp32;
    run_passes(graph, PassStage::kForward, context);
    add_optimizer(graph);
    run_passes(graph, PassStage::kStep, context);
    return print(graph);
  };
  EXPECT_EQ(compile(), compile());
}

// What a matmul's rate depends on is known when an order is chosen by it.
TEST(Pipeline, WhatSetsRatesComesBeforeWhatGoesByThem) {
  auto place = [](std::string_view name) {
    return std::find_if(pipeline().begin(), pipeline().end(), [&](const Pass& pass) { return pass.name == name; }) -
           pipeline().begin();
  };
  for (const char* sets : {"autocast", "decompose_context", "tf32"})
    for (const char* goes : {"overlap", "choose_recompute"}) EXPECT_LT(place(sets), place(goes)) << sets;
}

}  // namespace
}  // namespace tokamak
