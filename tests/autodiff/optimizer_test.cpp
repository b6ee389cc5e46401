#include "autodiff/optimizer.h"

#include "config/optimizer_config.h"
#include "graph/builder.h"
#include "ops/pointwise.h"
#include "tests/autodiff/run_graph.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace tokamak::test {
namespace {

const std::vector<std::pair<std::string, Shape>> kParameters = {{"w", {3, 4}}, {"b", {4}}, {"u", {2, 2, 2}}};

OptimizerConfig config(double clip) {
  OptimizerConfig c;
  c.beta1 = 0.8;
  c.beta2 = 0.9;
  c.eps = 1e-6;
  c.weight_decay = 0.05;
  c.clip = clip;
  return c;
}

// AdamW with clipping as PyTorch documents it, one element after the other.
struct ByHand {
  std::map<std::string, std::vector<double>> p, m, v;
  int step = 0;

  double update(std::map<std::string, std::vector<double>> grads, const OptimizerConfig& c, double lr) {
    double square = 0;
    for (auto& [name, g] : grads)
      for (double x : g) square += x * x;
    double norm = std::sqrt(square), factor = c.clip > 0 ? std::min(1.0, c.clip / (norm + 1e-6)) : 1.0;
    ++step;
    for (const auto& [name, shape] : kParameters) {
      m[name].resize(p[name].size());
      v[name].resize(p[name].size());
      for (size_t i = 0; i < p[name].size(); ++i) {
        double g = grads[name][i] * factor;
        if (shape.size() > 1) p[name][i] -= lr * c.weight_decay * p[name][i];
        m[name][i] = c.beta1 * m[name][i] + (1 - c.beta1) * g;
        v[name][i] = c.beta2 * v[name][i] + (1 - c.beta2) * g * g;
        double m_hat = m[name][i] / (1 - std::pow(c.beta1, step)), v_hat = v[name][i] / (1 - std::pow(c.beta2, step));
        p[name][i] -= lr * m_hat / (std::sqrt(v_hat) + c.eps);
      }
    }
    return norm;
  }
};

void compare_with_hand(double clip, int64_t micro_batches) {
  OptimizerConfig c = config(clip);
  std::vector<std::pair<std::string, ValueType>> parameters;
  for (const auto& [name, shape] : kParameters) parameters.emplace_back(name, ValueType{DType::kF32, shape});
  Graph accumulate("accumulate");
  GraphBuilder g(accumulate);
  Gradients gradients;
  for (const auto& [name, type] : parameters) {
    gradients.parameters.push_back(g.parameter(name, type));
    gradients.grads.push_back(g.input("in." + name, type));
  }
  append_accumulation(g, gradients);
  verify(accumulate);
  Graph update = accumulated_update_graph(accumulate, c, micro_batches);
  verify(update);

  std::map<std::string, HostTensor> values;
  ByHand hand;
  for (size_t i = 0; i < parameters.size(); ++i) {
    values[parameters[i].first] = random_tensor(parameters[i].second, 40 + i);
    hand.p[parameters[i].first] = values[parameters[i].first].data;
  }
  for (int step = 0; step < 5; ++step) {
    std::map<std::string, std::vector<double>> mean;
    for (int64_t micro = 0; micro < micro_batches; ++micro) {
      for (size_t i = 0; i < parameters.size(); ++i) {
        const auto& [name, type] = parameters[i];
        HostTensor grad = random_tensor(type, uint64_t(1000 * step + 10 * micro) + i);
        mean[name].resize(grad.data.size());
        for (size_t k = 0; k < grad.data.size(); ++k) mean[name][k] += grad.data[k] / double(micro_batches);
        values["in." + name] = grad;
      }
      run_graph(accumulate, values);
    }
    double lr = 0.1 / (step + 1);
    values["lr"] = HostTensor({DType::kF32, {}}, {lr});
    double norm = run_graph(update, values)[0][0];
    EXPECT_NEAR(norm, hand.update(mean, c, lr), 1e-12);
    for (const auto& [name, p] : hand.p)
      for (size_t i = 0; i < p.size(); ++i)
        ASSERT_NEAR(values[name].data[i], p[i], 1e-12) << name << " at step " << step;
    for (const auto& [name, type] : parameters)
      for (double v : values["grad." + name].data) ASSERT_EQ(v, 0) << "grad." << name << " starts anew";
  }
  EXPECT_EQ(values["step"][0], 5);
}

TEST(Adamw, EqualsALoopWithoutClipping) { compare_with_hand(0, 1); }
TEST(Adamw, EqualsALoopWithClipping) { compare_with_hand(0.7, 1); }
TEST(Adamw, LeavesShortGradientsAlone) { compare_with_hand(100, 1); }
TEST(Adamw, AveragesMicroBatches) { compare_with_hand(0.7, 3); }

// A table on the first and the last stage of a pipeline: one of them counts its squares.
TEST(Adamw, ANormLeavesOutWhatAnotherStageCounts) {
  auto norm_without = [](const std::set<std::string>& uncounted) {
    Graph graph("update");
    GraphBuilder g(graph);
    Gradients gradients;
    Values values;
    for (const std::string name : {"u", "w"}) {
      gradients.parameters.push_back(g.parameter(name, {DType::kF32, {2}}));
      gradients.grads.push_back(g.input("grad." + name, {DType::kF32, {2}}));
    }
    values["grad.u"] = HostTensor({DType::kF32, {2}}, {3, 4});
    values["grad.w"] = HostTensor({DType::kF32, {2}}, {0, 12});
    append_update(g, gradients, config(0), 1, {}, {.uncounted = uncounted});
    return run_graph(graph, values)[0][0];
  };
  EXPECT_DOUBLE_EQ(norm_without({}), 13);
  EXPECT_DOUBLE_EQ(norm_without({"w"}), 5);
}

// Of the last micro-batch one gradient is left as that of the step, as a pipeline's stage does; the others are added up
// as before it.
TEST(Adamw, EqualsItselfFromReducedGradients) {
  const ValueType type{DType::kF32, {3}};
  auto micro_batch = [&](bool is_last) {
    Graph graph("micro_batch");
    GraphBuilder g(graph);
    Gradients added, left;
    for (const std::string name : {"u", "w"}) {
      Gradients& own = is_last && name == "w" ? left : added;
      own.parameters.push_back(g.parameter(name, type));
      ValueId input = g.input("in." + name, type);
      own.grads.push_back(mul(g, input, input));
    }
    append_accumulation(g, added);
    return is_last ? with_sums_reduced(graph, left) : graph;
  };
  Graph first = micro_batch(false), last = micro_batch(true);
  verify(last);
  EXPECT_EQ(reduced_parameters(last), std::set<std::string>{"w"});
  Values expected, got;
  for (const std::string name : {"u", "w"}) expected[name] = random_tensor(type, name[0]);
  got = expected;
  for (int step = 0; step < 3; ++step) {
    for (bool is_last : {false, true}) {
      for (const std::string name : {"u", "w"})
        expected["in." + name] = got["in." + name] = random_tensor(type, uint64_t(10 * step + is_last) + name[0]);
      run_graph(first, expected);
      run_graph(is_last ? last : first, got);
    }
    expected["lr"] = got["lr"] = HostTensor({DType::kF32, {}}, {0.1});
    Graph update = accumulated_update_graph(first, config(0.7), 2, {}, {.reduced = {"w"}});
    verify(update);
    EXPECT_EQ(run_graph(update, got)[0][0], run_graph(accumulated_update_graph(first, config(0.7), 2), expected)[0][0]);
  }
  for (const auto& [name, tensor] : expected) EXPECT_EQ(got.at(name).data, tensor.data) << name;
}

TEST(Adamw, IsTheUpdatePhase) {
  Graph model;
  GraphBuilder(model).parameter("w", {DType::kF32, {2, 2}});
  Graph graph = accumulated_update_graph(model, config(1), 1);
  for (const Node& node : graph.nodes()) EXPECT_EQ(node.phase, Phase::kUpdate) << node.op->name;
}

}  // namespace
}  // namespace tokamak::test
