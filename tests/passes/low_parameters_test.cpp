#include "passes/low_parameters.h"

#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

// One parameter that is only multiplied, one that is looked up and multiplied, one that is read as it is as well, and
// one whose storage changes.
constexpr const char* kGraph = R"(graph g {
  input x = %0 : bf16[2,4]
  input ids = %1 : i32[2]
  param only = %2 : f32[4,4]
  param table = %3 : f32[8,4]
  param both = %4 : f32[4,4]
  param changed = %5 : f32[4,4]
  %6 = cast(%2) {to="bf16"} : bf16[4,4]
  %7 = matmul(%0, %6) {trans_a=false, trans_b=false} : bf16[2,4]
  %8 = embedding(%3, %1) : f32[2,4]
  %9 = cast(%8) {to="bf16"} : bf16[2,4]
  %10 = cast(%3) {to="bf16"} : bf16[8,4]
  %11 = matmul(%9, %10) {trans_a=false, trans_b=true} : bf16[2,8]
  %12 = cast(%4) {to="bf16"} : bf16[4,4]
  %13 = exp(%4) : f32[4,4]
  %14 = cast(%5) {to="bf16"} : bf16[4,4]
  %15 = exp(%5) : f32[4,4]
  result a = %7
  result b = %11
  result c = %12
  result d = %13
  result e = %14
  update %5 = %15
})";

DType stored(const Graph& graph, std::string_view name) { return graph.dtype(graph.find_argument(name)); }

TEST(LowParameters, AreThoseThatAreOnlyReadInALowType) {
  Graph graph = parse(kGraph);
  ASSERT_TRUE(low_parameters(graph, {}));
  verify(graph);
  EXPECT_EQ(stored(graph, "only"), DType::kBF16);
  EXPECT_EQ(stored(graph, "table"), DType::kBF16);
  EXPECT_EQ(stored(graph, "both"), DType::kF32);
  EXPECT_EQ(stored(graph, "changed"), DType::kF32);
  EXPECT_EQ(count_ops(graph, "cast"), 2);
  EXPECT_FALSE(low_parameters(graph, {}));
}

}  // namespace
}  // namespace tokamak::test
