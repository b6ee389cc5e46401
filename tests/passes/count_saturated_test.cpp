#include "passes/count_saturated.h"

#include "ops/interpret.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr std::string_view kGraph = R"(graph g {
    input a = %0 : f32[4,8]
    input b = %1 : f32[16]
    %2 = cast(%0) {to="f8e5m2"} #backward : f8e5m2[4,8]
    %3 = cast(%1) {to="f8e5m2"} #backward : f8e5m2[16]
    %4 = cast(%1) {to="f8e4m3"} : f8e4m3[16]
    %5 = constant() {dtype="f32", shape=[], value=0.5} #update : f32[]
    result y = %2
    result z = %3
    result w = %4
)";

TEST(CountSaturated, CountsElementsThatBecameTheLargest) {
  Graph graph = test::parse(std::string(kGraph) + "result saturated = %5 }");
  EXPECT_TRUE(count_saturated(graph, {}));
  verify(graph);
  std::vector<HostTensor> arguments = test::random_arguments(graph);
  EXPECT_EQ(interpret(graph, arguments).results.back()[0], 0);
  arguments[0][3] = 1e6;
  arguments[0][5] = -HUGE_VAL;
  arguments[0][6] = 49152;  // the largest but one
  arguments[1][15] = -57344;
  EXPECT_EQ(interpret(graph, arguments).results.back()[0], 3);
}

TEST(CountSaturated, IsOnlyWhereItIsToldAndOfGradients) {
  Graph silent = test::parse(std::string(kGraph) + "}");
  EXPECT_FALSE(count_saturated(silent, {}));
  Graph without = test::parse(R"(graph g {
    input b = %0 : f32[16]
    %1 = cast(%0) {to="f8e4m3"} : f8e4m3[16]
    %2 = constant() {dtype="f32", shape=[], value=0.5} #update : f32[]
    result w = %1
    result saturated = %2
  })");
  EXPECT_FALSE(count_saturated(without, {}));
}

TEST(CountSaturated, AddsUpOverRanks) {
  Graph graph = test::parse(std::string(kGraph) + "result saturated = %5 }");
  PassContext context;
  context.mesh.axes = {{"data", 2}, {"context", 1}, {"tensor", 4}};
  EXPECT_TRUE(count_saturated(graph, context));
  verify(graph);
  EXPECT_EQ(test::count_ops(graph, "all_reduce"), 2);
}

}  // namespace
}  // namespace tokamak
