// Dynamic loss scaling as graph nodes: what an overflow skips, and how the scale moves.
#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "tests/autodiff/run_graph.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

namespace tokamak::test {
namespace {

using Results = std::map<std::string, double>;

Results run(const Graph& graph, Values& values) {
  std::vector<HostTensor> out = run_graph(graph, values);
  Results results;
  for (size_t r = 0; r < out.size(); ++r) results[graph.results()[r].name] = out[r][0];
  return results;
}

OptimizerConfig config() {
  OptimizerConfig c;
  c.clip = 1;
  return c;
}

HostTensor scalar(double value) { return HostTensor({DType::kF32, {}}, {value}); }

// loss = sum(w * x) with the gradient of w rounded to f16 on its way: |x| * scale above 65504 overflows.
ValueId loss_of(GraphBuilder& g, ValueId w) {
  ValueId x = g.input("x", {DType::kF32, {2}});
  return reduce_sum(g, mul(g, cast(g, w, DType::kF16), x), {0}, false);
}

Graph step_graph(const std::optional<LossScaling>& scaling) {
  Graph graph("step");
  GraphBuilder g(graph);
  ValueId w = g.parameter("w", {DType::kF32, {2}}), loss = loss_of(g, w);
  graph.add_result("loss", loss);
  Gradients gradients{{w}, differentiate(g, scaling ? scaled_loss(g, loss) : loss, std::array{w})};
  // As autocast leaves it: the gradient that reaches the optimizer is f16.
  gradients.grads[0] = cast(g, gradients.grads[0], DType::kF16);
  append_update(g, gradients, config(), 1, scaling);
  verify(graph);
  return graph;
}

Values start(double scale) {
  Values values;
  values["w"] = HostTensor({DType::kF32, {2}}, {0.5, -0.25});
  values["x"] = HostTensor({DType::kF32, {2}}, {0.75, 0.5});
  for (const char* name : {"adam.m.w", "adam.v.w"}) values[name] = HostTensor({DType::kF32, {2}});
  values["step"] = scalar(0);
  values["lr"] = scalar(0.1);
  values["scaler.scale"] = scalar(scale);
  return values;
}

TEST(LossScaling, DoesNotChangeAGoodStep) {
  Values scaled = start(1024), plain = start(0);
  Graph a = step_graph(LossScaling{}), b = step_graph({});
  for (int i = 0; i < 3; ++i) {
    Results with = run(a, scaled), without = run(b, plain);
    EXPECT_EQ(with["loss"], without["loss"]);
    EXPECT_NEAR(with["grad_norm"], without["grad_norm"], 1e-12);
    EXPECT_EQ(with["loss_scale"], 1024);
    EXPECT_EQ(with["skipped"], 0);
  }
  for (const char* name : {"w", "adam.m.w", "adam.v.w", "step"})
    for (int64_t i = 0; i < plain[name].size(); ++i) EXPECT_NEAR(scaled[name][i], plain[name][i], 1e-12) << name;
  EXPECT_EQ(scaled["scaler.good_steps"][0], 3);
}

TEST(LossScaling, AnOverflowSkipsTheUpdateAndHalvesTheScale) {
  Graph graph = step_graph(LossScaling{});
  for (bool first : {true, false}) {  // with moments and a step of zero, and of something
    Values values = start(65536 * 4);
    if (!first) {
      values["scaler.scale"] = scalar(1024);
      run(graph, values);
      values["scaler.scale"] = scalar(65536 * 4);
    }
    Values before = values;
    for (int skipped = 1; skipped <= 2; ++skipped) {  // 0.75 * 262144 and * 131072 are beyond f16
      Results results = run(graph, values);
      EXPECT_FALSE(std::isfinite(results["grad_norm"]));
      EXPECT_TRUE(std::isfinite(results["loss"]));
      EXPECT_EQ(results["skipped"], skipped);
      for (const char* name : {"w", "adam.m.w", "adam.v.w", "step"})
        EXPECT_EQ(values[name].data, before[name].data) << name;
      EXPECT_EQ(values["scaler.good_steps"][0], 0);
    }
    EXPECT_EQ(values["scaler.scale"][0], 65536);
    Results good = run(graph, values);
    EXPECT_NEAR(good["grad_norm"], std::hypot(0.75, 0.5), 1e-12);
    EXPECT_EQ(good["skipped"], 2);
    EXPECT_EQ(values["step"][0], before["step"].data[0] + 1);
    EXPECT_NE(values["w"].data, before["w"].data);
  }
}

TEST(LossScaling, NotANumberIsAnOverflow) {
  Graph graph = step_graph(LossScaling{});
  Values values = start(1024), before = values;
  values["x"] = HostTensor({DType::kF32, {2}}, {std::nan(""), 1});
  run(graph, values);
  EXPECT_EQ(values["w"].data, before["w"].data);
  EXPECT_EQ(values["scaler.scale"][0], 512);
  values["x"] = before["x"];
  run(graph, values);
  EXPECT_TRUE(std::isfinite(values["w"][0]));
  EXPECT_NE(values["w"].data, before["w"].data);
}

TEST(LossScaling, GrowsAfterGoodSteps) {
  Graph graph = step_graph(LossScaling{.growth_interval = 3});
  Values values = start(16);
  std::vector<double> scales;
  for (int i = 0; i < 7; ++i) {
    run(graph, values);
    scales.push_back(values["scaler.scale"][0]);
  }
  EXPECT_EQ(scales, (std::vector<double>{16, 16, 32, 32, 32, 64, 64}));
}

TEST(LossScaling, GrowsToTwoToThe32AndNoFurther) {
  Graph graph = step_graph(LossScaling{.growth_interval = 1});
  Values values = start(0x1p30);
  values["x"] = HostTensor({DType::kF32, {2}}, {1e-6, 1e-6});  // so small that nothing overflows
  std::vector<double> scales;
  for (int i = 0; i < 4; ++i) {
    run(graph, values);
    scales.push_back(values["scaler.scale"][0]);
  }
  EXPECT_EQ(scales, (std::vector<double>{0x1p31, 0x1p32, 0x1p32, 0x1p32}));
}

// The scale is the same for all micro-batches of a step, and one that overflowed skips all of it.
TEST(LossScaling, WithAccumulation) {
  Graph micro("micro");
  GraphBuilder g(micro);
  ValueId w = g.parameter("w", {DType::kF32, {2}}), loss = loss_of(g, w);
  Gradients gradients{{w}, differentiate(g, scaled_loss(g, loss), std::array{w})};
  gradients.grads[0] = cast(g, gradients.grads[0], DType::kF16);
  append_accumulation(g, gradients);
  verify(micro);
  Graph update = accumulated_update_graph(micro, config(), 2, LossScaling{});
  verify(update);

  Values values = start(65536), before = values;
  auto step = [&](double x) {
    values["x"] = HostTensor({DType::kF32, {2}}, {x, 0.5});
    run(micro, values);
    values["x"] = HostTensor({DType::kF32, {2}}, {0.5, 0.5});
    run(micro, values);
    return run(update, values);
  };
  EXPECT_EQ(step(2)["skipped"], 1);
  EXPECT_EQ(values["w"].data, before["w"].data);
  EXPECT_EQ(values["grad.w"].data, (std::vector<double>{0, 0})) << "the overflow must not outlive its step";
  EXPECT_EQ(values["scaler.scale"][0], 32768);
  EXPECT_NEAR(step(0.25)["grad_norm"], std::hypot(0.375, 0.5), 1e-12);
  EXPECT_NE(values["w"].data, before["w"].data);
}

}  // namespace
}  // namespace tokamak::test
