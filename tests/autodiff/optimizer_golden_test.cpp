// Ten steps against PyTorch's and bitsandbytes': tools/make_optimizer_goldens.py.
#include "autodiff/optimizer.h"
#include "base/file.h"
#include "config/field.h"
#include "config/optimizer_config.h"
#include "config/visit.h"
#include "tests/autodiff/run_graph.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tokamak::test {
namespace {

using nlohmann::json;

OptimizerConfig config_of(const json& golden) {
  OptimizerConfig config;
  config.name = golden["rule"];
  config.clip = 0;
  std::vector<Field> fields = fields_of(config);
  for (const auto& [key, value] : golden["options"].items()) {
    Value given = value.is_boolean()  ? Value(bool(value))
                  : value.is_number() ? Value(double(value))
                                      : Value(std::string(value));
    set(*find_field(fields, key), given, key);
  }
  return config;
}

// (rows, columns) of a matrix, or of one that lies transposed.
std::vector<double> numbers_of(const json& list, const Shape& shape, bool transposed) {
  auto numbers = list.get<std::vector<double>>();
  if (!transposed) return numbers;
  std::vector<double> other;
  for (int64_t c = 0; c < shape[1]; ++c)
    for (int64_t r = 0; r < shape[0]; ++r) other.push_back(numbers[size_t(r * shape[1] + c)]);
  return other;
}

// Of any size, where the rule is only for large matrices.
Optimizer optimizer_of(const OptimizerConfig& config) {
  static const OptimizerRule kOfAnySize = [] {
    OptimizerRule rule = adamw8bit_rule;
    rule.other_rule = nullptr;
    return rule;
  }();
  return config.name == "adamw8bit" ? Optimizer(kOfAnySize, config) : Optimizer(config);
}

void expect_pytorchs_steps(const std::string& name, const json& golden, bool transposed) {
  OptimizerConfig config = config_of(golden);
  double tolerance = config.name == "adamw8bit" ? 5e-6 : 1e-9;  // float32, of which 6 digits are kept
  Graph graph("update");
  GraphBuilder g(graph);
  Shape shape = golden["shape"].get<std::vector<int64_t>>();
  ValueType type{DType::kF32, transposed ? Shape{shape[1], shape[0]} : shape};
  ArgumentSpec spec{.role = shape.size() == 1 ? Role::kVector : Role::kColumn,
                    .global = type.shape,
                    .blocks = golden["blocks"],
                    .cuts = {},
                    .transposed = transposed};
  ValueId parameter = graph.add_argument(Argument::Kind::kParameter, "w", type, spec);
  append_update(g, {{parameter}, {g.input("grad", type)}}, optimizer_of(config));
  Values values;
  values["w"] = HostTensor(type, numbers_of(golden["first"], shape, transposed));
  values["lr"] = HostTensor({DType::kF32, {}}, {config.lr});
  for (size_t step = 0; step < golden["grads"].size(); ++step) {
    values["grad"] = HostTensor(type, numbers_of(golden["grads"][step], shape, transposed));
    run_graph(graph, values);
    std::vector<double> after = numbers_of(golden["after"][step], shape, transposed);
    for (size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR(values["w"].data[i], after[i], tolerance) << name << " " << step << " " << i;
  }
}

TEST(OptimizerGoldens, TenStepsAreThoseOfPyTorch) {
  json goldens = json::parse(read_file("tests/goldens/optimizers.json"));
  ASSERT_EQ(goldens.size(), 11u);
  for (const auto& [name, golden] : goldens.items()) expect_pytorchs_steps(name, golden, false);
}

TEST(OptimizerGoldens, AreTheSameOfMatricesThatLieTransposed) {
  json goldens = json::parse(read_file("tests/goldens/optimizers.json"));
  for (const auto& [name, golden] : goldens.items())
    if (golden["blocks"] == 1 && golden["shape"].size() == 2 && golden["rule"] != "adamw8bit")
      expect_pytorchs_steps(name, golden, true);
}

}  // namespace
}  // namespace tokamak::test
