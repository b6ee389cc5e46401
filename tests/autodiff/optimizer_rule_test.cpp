#include "autodiff/optimizer_rule.h"

#include "autodiff/optimizer.h"
#include "config/field.h"
#include "config/optimizer_config.h"
#include "config/visit.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "tests/autodiff/run_graph.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tokamak::test {
namespace {

const Shape kMatrixShape = {2, 2}, kVectorShape = {3};

OptimizerConfig config_of(const OptimizerRule& rule) {
  OptimizerConfig c;
  c.name = rule.name;
  c.clip = 0;
  return c;
}

// One update of a matrix w and a vector b from gradients that are inputs.
Graph update_graph(const OptimizerConfig& config, const std::optional<LossScaling>& scaling = {}) {
  Graph graph("update");
  GraphBuilder g(graph);
  Gradients gradients;
  for (const auto& [name, shape] : {std::pair("w", kMatrixShape), std::pair("b", kVectorShape)}) {
    gradients.parameters.push_back(g.parameter(name, {DType::kF32, shape}));
    gradients.grads.push_back(g.input(std::string("in.") + name, {DType::kF32, shape}));
  }
  append_update(g, gradients, config, 1, scaling);
  verify(graph);
  return graph;
}

Values start() {
  Values values;
  values["w"] = HostTensor({DType::kF32, kMatrixShape}, {1, -2, 0.5, 3});
  values["b"] = HostTensor({DType::kF32, kVectorShape}, {0.25, -1, 2});
  values["in.w"] = HostTensor({DType::kF32, kMatrixShape}, {0.5, 0.25, -1, 2});
  values["in.b"] = HostTensor({DType::kF32, kVectorShape}, {1, -0.5, 0.125});
  values["lr"] = HostTensor({DType::kF32, {}}, {0.1});
  values["scaler.scale"] = HostTensor({DType::kF32, {}}, {1});
  return values;
}

TEST(OptimizerRules, KeepWhatTheySayOfEveryParameter) {
  for (const OptimizerRule* rule : optimizer_rules()) {
    OptimizerConfig config = config_of(*rule);
    Graph graph = update_graph(config);
    for (const char* name : {"w", "b"}) {
      const Argument& parameter = *graph.argument_of(graph.find_argument(name));
      for (const OptimizerState& state : Optimizer(config).rule_of(parameter).states) {
        ValueId value = graph.find_argument(fmt::format("{}.{}", state.prefix, name));
        ASSERT_NE(value, kNoValue) << state.prefix;
        ArgumentSpec expected{Role::kMoment, name, graph.shape(state.type ? value : parameter.value)};
        EXPECT_EQ(graph.argument_of(value)->spec, expected) << state.prefix;
      }
    }
  }
}

TEST(OptimizerRules, ReachAMinimum) {
  for (const OptimizerRule* rule : optimizer_rules())
    for (const char* type : {"f32", "bf16"}) {
      OptimizerConfig config = config_of(*rule);
      config.weight_decay = 0;
      config.state_type = type;
      Graph graph = update_graph(config);
      Values values = start();
      for (int step = 0; step < 1200; ++step) {  // of the sum of squares / 2, whose gradient is the parameter itself
        for (std::string name : {"w", "b"}) values["in." + name] = values[name];
        values["lr"][0] = 0.3 / (1 + 0.05 * step);
        run_graph(graph, values);
      }
      for (const char* name : {"w", "b"})
        for (double x : values[name].data) EXPECT_LT(std::fabs(x), 0.01) << rule->name << " " << name << " " << type;
    }
}

// Those of a rule's own type stay what they are.
TEST(OptimizerRules, KeepStatesInTheTypeThatIsAskedFor) {
  for (const OptimizerRule* rule : optimizer_rules()) {
    OptimizerConfig config = config_of(*rule);
    config.state_type = "bf16";
    Graph graph = update_graph(config);
    for (const char* name : {"w", "b"}) {
      const Argument& parameter = *graph.argument_of(graph.find_argument(name));
      for (const OptimizerState& state : Optimizer(config).rule_of(parameter).states) {
        if (state.type) continue;
        EXPECT_EQ(graph.dtype(graph.find_argument(fmt::format("{}.{}", state.prefix, name))), DType::kBF16);
      }
    }
  }
}

void expect_skipped_when_not_finite(const OptimizerConfig& config, const std::optional<LossScaling>& scaling) {
  Graph graph = update_graph(config, scaling);
  Values values = start();
  run_graph(graph, values);
  for (double bad : {double(INFINITY), -double(INFINITY), double(NAN)}) {
    Values before = values;
    values["in.w"][1] = bad;
    run_graph(graph, values);
    for (auto& [name, value] : before) {
      if (name.starts_with("scaler.") || name.starts_with("in.")) continue;
      EXPECT_EQ(values[name].data, value.data) << config.name << " " << name;
    }
    values["in.w"] = before["in.w"];
  }
  Values before = values;
  run_graph(graph, values);
  EXPECT_NE(values["w"].data, before["w"].data) << config.name;
  for (const char* name : {"w", "b"})
    for (double x : values[name].data) EXPECT_TRUE(std::isfinite(x)) << config.name;
}

// With loss scaling, and without; whether or not the norm is clipped.
TEST(OptimizerRules, LeaveEverythingAsItWasWhenAGradientIsNotFinite) {
  for (const OptimizerRule* rule : optimizer_rules())
    for (double clip : {0.0, 1.0}) {
      OptimizerConfig config = config_of(*rule);
      config.clip = clip;
      config.state_type = clip == 0 ? "f32" : "bf16";
      expect_skipped_when_not_finite(config, LossScaling{});
      expect_skipped_when_not_finite(config, {});
    }
}

TEST(OptimizerRules, DecayGoesByRole) {
  for (const OptimizerRule* rule : optimizer_rules()) {
    Graph graph("update");
    GraphBuilder g(graph);
    Gradients gradients;
    for (const auto& [name, role] : {std::pair("decays", Role::kMatrix), std::pair("stays", Role::kVector)}) {
      gradients.parameters.push_back(g.parameter(name, {DType::kF32, {2, 2}}, role));
      gradients.grads.push_back(constant(g, 0, {2, 2}));
    }
    append_update(g, gradients, config_of(*rule));
    Values values = start();
    for (const char* name : {"decays", "stays"}) values[name] = values["w"];
    run_graph(graph, values);
    EXPECT_NEAR(values["decays"][1], -2 * (1 - 0.1 * 0.1), 1e-12) << rule->name;
    EXPECT_EQ(values["stays"].data, values["w"].data) << rule->name;
  }
}

// Two steps by hand; torch.optim.SGD(lr=0.1, momentum=0.9, weight_decay=0.1) gives the same.
TEST(Sgd, TakesPyTorchsSteps) {
  OptimizerConfig config = config_of(sgd_rule);
  config.momentum = 0.9;
  config.weight_decay = 0.1;
  Graph graph = update_graph(config);
  Values values = start();
  run_graph(graph, values);
  EXPECT_NEAR(values["w"][0], 1 - 0.1 * (0.5 + 0.1), 1e-12);
  EXPECT_NEAR(values["w"][1], -2 - 0.1 * (0.25 - 0.2), 1e-12);
  EXPECT_NEAR(values["b"][0], 0.25 - 0.1 * 1, 1e-12);
  run_graph(graph, values);
  EXPECT_NEAR(values["w"][0], 0.94 - 0.1 * (0.9 * 0.6 + 0.5 + 0.094), 1e-12);
  EXPECT_NEAR(values["w"][1], -2.005 - 0.1 * (0.9 * 0.05 + 0.25 - 0.2005), 1e-12);
  EXPECT_NEAR(values["b"][0], 0.15 - 0.1 * (0.9 * 1 + 1), 1e-12);
  EXPECT_NEAR(values["sgd.m.b"][0], 1.9, 1e-12);
}

// Of many equal elements, whose momentum takes 1/8 of a last bit a step: some are rounded up, as many as must be.
TEST(Sgd, AMomentumInBf16IsRightInTheMean) {
  OptimizerConfig config = config_of(sgd_rule);
  config.weight_decay = 0;
  config.state_type = "bf16";
  config.momentum = 1 - 0x1p-20;
  Graph graph = update_graph(config);
  Values values = start();
  values["sgd.m.w"] = HostTensor({DType::kBF16, kMatrixShape}, {1, 1, 1, 1});
  for (double& grad : values["in.w"].data) grad = 0x1p-10;
  for (int step = 0; step < 1024; ++step) run_graph(graph, values);
  for (double m : values["sgd.m.w"].data) EXPECT_NEAR(m, 2, 0.25) << "rounded to the nearest it would stay 1";
}

// Two steps by hand, from beta1 = 0.9, beta2 = 0.95.
TEST(Lion, TakesTheSignOfItsMean) {
  OptimizerConfig config = config_of(lion_rule);
  Graph graph = update_graph(config);
  Values values = start();
  run_graph(graph, values);
  EXPECT_NEAR(values["w"][0], 1 * 0.99 - 0.1, 1e-12);
  EXPECT_NEAR(values["w"][1], -2 * 0.99 - 0.1, 1e-12);
  EXPECT_NEAR(values["b"][1], -1 + 0.1, 1e-12) << "vectors do not decay";
  EXPECT_NEAR(values["lion.m.w"][0], 0.05 * 0.5, 1e-12);
  values["in.w"][0] = -0.2, values["in.w"][1] = -2.25;  // means of +0.0025 and -0.21375
  run_graph(graph, values);
  EXPECT_NEAR(values["w"][0], 0.89 * 0.99 - 0.1, 1e-12) << "the sign of 0.9 m + 0.1 g, not that of g";
  EXPECT_NEAR(values["w"][1], -2.08 * 0.99 + 0.1, 1e-12);
  EXPECT_NEAR(values["lion.m.w"][0], 0.95 * 0.025 - 0.05 * 0.2, 1e-12);
}

TEST(Lion, ACautiousOneDecaysWhatItsStepMakesSmaller) {
  OptimizerConfig config = config_of(lion_rule);
  config.cautious_decay = true;
  Values values = start();
  run_graph(update_graph(config), values);
  EXPECT_NEAR(values["w"][0], 1 * 0.99 - 0.1, 1e-12);
  EXPECT_NEAR(values["w"][1], -2 - 0.1, 1e-12) << "it grows, so it does not decay";
  EXPECT_NEAR(values["w"][2], 0.5 + 0.1, 1e-12);
  EXPECT_NEAR(values["w"][3], 3 * 0.99 - 0.1, 1e-12);
}

TEST(Muon, LeavesTablesAndVectorsToAdamWWithItsRate) {
  OptimizerConfig config = config_of(muon_rule), of_adamw = config_of(adamw_rule);
  config.adamw_lr_ratio = 0.25;
  Values values = start(), by_adamw = start();
  run_graph(update_graph(config), values);
  by_adamw["lr"][0] *= 0.25;
  run_graph(update_graph(of_adamw), by_adamw);
  EXPECT_EQ(values["b"].data, by_adamw["b"].data);
  Values full = start();
  config.adamw_lr_ratio = 1;
  run_graph(update_graph(config), full);
  EXPECT_EQ(full["w"].data, values["w"].data) << "matrices have the rate itself";
  for (Role role :
       {Role::kEmbedding, Role::kPosition, Role::kClassifier, Role::kValueTable, Role::kVector, Role::kColumnBias}) {
    Argument argument{.spec = {.role = role, .global = {2, 2}}};
    EXPECT_EQ(&Optimizer(config).rule_of(argument), &adamw_rule) << role_name(role);
  }
  for (Role role : {Role::kColumn, Role::kRow, Role::kMatrix}) {
    Argument argument{.spec = {.role = role, .global = {2, 2}}};
    EXPECT_EQ(&Optimizer(config).rule_of(argument), &muon_rule) << role_name(role);
  }
}

// The gradient is diag(3, 1), whose orthogonal matrix is diagonal: outputs are columns.
TEST(Normuon, GivesEveryOutputTheSameSize) {
  OptimizerConfig config = config_of(normuon_rule);
  config.weight_decay = 0;
  Values values = start();
  values["in.w"].data = {3, 0, 0, 1};
  run_graph(update_graph(config), values);
  EXPECT_NEAR(values["w"][0], 1 - 0.1 * 0.2 * std::sqrt(2), 1e-6);
  EXPECT_NEAR(values["w"][3], 3 - 0.1 * 0.2 * std::sqrt(2), 1e-6);
  EXPECT_NEAR(values["w"][1], -2, 1e-12);
  double first = values["muon.v.w"][0], second = values["muon.v.w"][1];
  EXPECT_GT(first, 0.05 * 0.5 * 0.65 * 0.65);
  EXPECT_LT(first, 0.05 * 0.5 * 1.25 * 1.25);
  EXPECT_NE(first, second) << "it is of the matrix before";
}

// What adamw8bit keeps of a matrix of 4096 elements, of one of fewer, and of a vector of more.
Graph graph_of_sizes(const OptimizerConfig& config) {
  Graph graph("update");
  GraphBuilder g(graph);
  Gradients gradients;
  for (const auto& [name, shape] : {std::pair("large", Shape{32, 128}), std::pair("small", Shape{31, 128}),
                                    std::pair("long", Shape{5000}), std::pair("prime", Shape{64, 257})}) {
    gradients.parameters.push_back(g.parameter(name, {DType::kF32, shape}));
    gradients.grads.push_back(g.input(std::string("in.") + name, {DType::kF32, shape}));
  }
  append_update(g, gradients, config);
  verify(graph);
  return graph;
}

TEST(Adamw8bit, LeavesSmallTensorsAndVectorsToAdamW) {
  OptimizerConfig config = config_of(adamw8bit_rule);
  config.adamw_lr_ratio = 0.5;
  Graph graph = graph_of_sizes(config);
  EXPECT_EQ(to_string(graph.type(graph.find_argument("adam8.m.large"))), "u8[32,1,128]");
  EXPECT_EQ(to_string(graph.type(graph.find_argument("adam8.v_scale.large"))), "f32[32,1]");
  for (const char* name : {"small", "long", "prime"}) {
    EXPECT_NE(graph.find_argument(std::string("adam.m.") + name), kNoValue) << name;
    EXPECT_EQ(graph.find_argument(std::string("adam8.m.") + name), kNoValue) << name;
    EXPECT_EQ(Optimizer(config).rates_of(*graph.argument_of(graph.find_argument(name))).lr, 1) << "the rate itself";
  }
}

// What a rank has of it is no matter.
TEST(Adamw8bit, GoesByTheSizeInTheModel) {
  OptimizerConfig config = config_of(adamw8bit_rule);
  Argument stored_longer{.name = "w", .spec = {.role = Role::kEmbedding, .global = {31, 128}}};
  EXPECT_EQ(&Optimizer(config).rule_of(stored_longer), &adamw_rule);
  Argument large{.name = "w", .spec = {.role = Role::kEmbedding, .global = {32, 128}}};
  EXPECT_EQ(&Optimizer(config).rule_of(large), &adamw8bit_rule);
}

TEST(Adamw8bit, ReachesAMinimumAndKeepsAllInASkippedStep) {
  OptimizerConfig config = config_of(adamw8bit_rule);
  config.weight_decay = 0;
  Graph graph = graph_of_sizes(config);
  Values values;
  for (const char* name : {"large", "small", "long", "prime"}) {
    HostTensor& w = values[name] = HostTensor(graph.type(graph.find_argument(name)));
    for (int64_t i = 0; i < w.size(); ++i) w[i] = 0.01 * double(i % 199 - 99);
  }
  values["lr"] = HostTensor({DType::kF32, {}}, {0});
  for (int step = 0; step < 120; ++step) {
    for (std::string name : {"large", "small", "long", "prime"}) values["in." + name] = values[name];
    values["lr"][0] = 0.1 / (1 + 0.1 * step);
    run_graph(graph, values);
  }
  double sum = 0;
  for (double x : values["large"].data) sum += x * x / 4096;
  EXPECT_LT(std::sqrt(sum), 0.01);
  values["in.small"][7] = NAN;
  Values before = values;
  run_graph(graph, values);
  for (auto& [name, value] : before)
    if (!name.starts_with("in.")) EXPECT_EQ(values[name].data, value.data) << name;
}

// After small gradients a large one is longer, as the mean of squares lags behind.
TEST(Adafactor, NoDirectionIsLongerThanOne) {
  OptimizerConfig config = config_of(adafactor_rule);
  Graph graph = update_graph(config);
  Values values = start();
  values["b"].data = {1, 1, 1};
  values["in.b"].data = {0.01, 0.01, 0.01};
  run_graph(graph, values);
  EXPECT_NEAR(values["b"][0], 1 - 0.1 * 1, 1e-9);
  values["in.b"].data = {1, 1, 1};
  run_graph(graph, values);
  EXPECT_NEAR(values["b"][0], 0.9 - 0.1 * 0.9, 1e-9);
}

// Rows that were added to the vocabulary count nowhere.
TEST(Adafactor, GoesByTheShapeInTheModel) {
  OptimizerConfig config = config_of(adafactor_rule);
  auto after = [&](int64_t rows) {
    Graph graph("update");
    GraphBuilder g(graph);
    ArgumentSpec spec{.role = Role::kEmbedding, .global = {2, 3}};
    ValueType type{DType::kF32, {rows, 3}};
    ValueId w = graph.add_argument(Argument::Kind::kParameter, "w", type, spec);
    append_update(g, {{w}, {g.input("grad", type)}}, config);
    EXPECT_EQ(graph.argument_of(graph.find_argument("adafactor.rows.w"))->spec.global, (Shape{2}));
    Values values;
    values["lr"] = HostTensor({DType::kF32, {}}, {0.1});
    for (auto [name, first] : {std::pair("w", 0.5), std::pair("grad", -0.25)}) {
      values[name] = HostTensor(type);
      for (int64_t i = 0; i < 6; ++i) values[name][i] = first + 0.125 * double(i);
    }
    for (int step = 0; step < 3; ++step) run_graph(graph, values);
    for (int64_t i = 6; i < 3 * rows; ++i) EXPECT_EQ(values["w"][i], 0);
    std::vector<double> result(values["w"].data.begin(), values["w"].data.begin() + 6);
    const auto& columns = values["adafactor.columns.w"].data;  // its means are over rows
    result.insert(result.end(), columns.begin(), columns.end());
    return result;
  };
  std::vector<double> plain = after(2), padded = after(5);
  ASSERT_EQ(plain.size(), 9u);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(padded[i], plain[i], 1e-14);
}

// ema: 1 after the first update, then decay old + (1 - decay) new; a skipped step changes nothing.
TEST(WeightAverage, BeginsWithTheFirstUpdate) {
  OptimizerConfig config = config_of(sgd_rule);
  config.ema = 0.75;
  config.state_type = "bf16";
  Graph graph = update_graph(config);
  EXPECT_EQ(graph.type(graph.find_argument("ema.w")), graph.type(graph.find_argument("w")))
      << "f32 whatever states are";
  EXPECT_EQ(graph.argument_of(graph.find_argument("ema.w"))->spec.role, Role::kMoment);
  Values values = start();
  double bad = values["in.w"][0];
  values["in.w"][0] = INFINITY;
  run_graph(graph, values);
  EXPECT_EQ(values["ema.w"][1], 0);
  values["in.w"][0] = bad;
  run_graph(graph, values);
  EXPECT_EQ(values["ema.w"].data, values["w"].data);
  std::vector<double> mean = values["ema.w"].data;
  run_graph(graph, values);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(values["ema.w"].data[i], 0.75 * mean[i] + 0.25 * values["w"].data[i], 1e-12);
}

TEST(OptimizerRules, AnUnknownOneIsRefusedWithTheKnown) {
  OptimizerConfig config;
  config.name = "adamv";
  expect_user_error([&] { rule_of(config); },
                    {"[optimizer.name] expected a known optimizer (adamw, ", "got 'adamv'; did you mean 'adamw'?"});
}

TEST(OptimizerRules, HelpNamesEveryOne) {
  OptimizerConfig config;
  std::vector<Field> fields = fields_of(config);
  for (const OptimizerRule* rule : optimizer_rules())
    EXPECT_NE(find_field(fields, "name")->help.find(rule->name), std::string::npos) << rule->name;
}

}  // namespace
}  // namespace tokamak::test
