// Ten steps against PyTorch's: tools/make_optimizer_goldens.py.
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

void expect_pytorchs_steps(const std::string& name, const json& golden) {
  OptimizerConfig config = config_of(golden);
  Graph graph("update");
  GraphBuilder g(graph);
  ValueType type{DType::kF32, golden["shape"].get<Shape>()};
  Layout layout{.role = Role::kColumn, .global = type.shape, .blocks = golden["blocks"]};
  ValueId parameter = graph.add_argument(Argument::Kind::kParameter, "w", type, layout);
  append_update(g, {{parameter}, {g.input("grad", type)}}, config);
  Values values;
  values["w"] = HostTensor(type, golden["first"].get<std::vector<double>>());
  values["lr"] = HostTensor({DType::kF32, {}}, {config.lr});
  for (size_t step = 0; step < golden["grads"].size(); ++step) {
    values["grad"] = HostTensor(type, golden["grads"][step].get<std::vector<double>>());
    run_graph(graph, values);
    for (size_t i = 0; i < values["w"].data.size(); ++i)
      ASSERT_NEAR(values["w"].data[i], double(golden["after"][step][i]), 1e-9) << name << " " << step << " " << i;
  }
}

TEST(OptimizerGoldens, TenStepsAreThoseOfPyTorch) {
  json goldens = json::parse(read_file("tests/goldens/optimizers.json"));
  ASSERT_EQ(goldens.size(), 7u);
  for (const auto& [name, golden] : goldens.items()) expect_pytorchs_steps(name, golden);
}

}  // namespace
}  // namespace tokamak::test
