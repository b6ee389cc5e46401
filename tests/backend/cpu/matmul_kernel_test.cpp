// The CPU has kernels for plain products; forms with more to them (ops/matmul_form.h) are the reference's.
#include "backend/cpu/kernels.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_tensors.h"
#include "tests/support/run_on_cpu.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

// `function` is that of %4, the sum of product and bias; its value is %7.
Graph fused_with(std::string_view function) {
  return parse(fmt::format(R"(graph g {{
    input x = %0 : f32[3,4]
    input w = %1 : f32[4,5]
    input b = %2 : f32[5]
    %3 = fused_matmul(%0, %1, %2) : f32[3,5] {{
      graph body {{
        input a0 = %0 : f32[3,4]
        input a1 = %1 : f32[4,5]
        input a2 = %2 : f32[5]
        %3 = matmul(%0, %1) {{trans_a=false, trans_b=false}} : f32[3,5]
        %4 = add(%3, %2) : f32[3,5]
        {}
        result r0 = %7
      }}
    }}
    result y = %3
  }})",
                           function));
}

TEST(CpuMatmulKernel, LeavesFunctionsToTheReference) {
  for (const char* function : {"%7 = gelu(%4) : f32[3,5]", "%6 = tanh(%4) : f32[3,5] %7 = mul(%6, %6) : f32[3,5]"}) {
    Graph graph = fused_with(function);
    EXPECT_FALSE(cpu::has_kernel(graph, graph.nodes()[0]));
    std::vector<HostTensor> arguments = random_arguments(graph);
    Interpretation got = run_on_cpu(graph, arguments), want = interpret(graph, arguments);
    for (size_t i = 0; i < want.results[0].data.size(); ++i) EXPECT_NEAR(got.results[0][i], want.results[0][i], 1e-5);
  }
}

// A product of `rows` rows: few have a kernel of their own, which reads each operand by its type.
Graph product(int rows, std::string_view a, std::string_view b, std::string_view attrs, std::string_view result) {
  return parse(fmt::format(R"(graph g {{
    input a = %0 : {1}[{0},16]
    input b = %1 : {2}[16,12]
    %2 = matmul(%0, %1) {{{3}trans_a=false, trans_b=false}} : {4}[{0},12]
    result y = %2
  }})",
                           rows, a, b, attrs, result));
}

TEST(CpuMatmulKernel, LeavesFormatsThatItDoesNotKnowToTheReference) {
  auto has = [](const Graph& graph) { return cpu::has_kernel(graph, graph.nodes()[0]); };
  EXPECT_TRUE(has(product(20, "bf16", "bf16", "", "bf16")));
  EXPECT_TRUE(has(product(20, "bf16", "bf16", "result=\"f32\", ", "f32")));
  EXPECT_TRUE(has(product(20, "f32", "f32", "tf32=true, ", "f32"))) << "it need not round more";
  EXPECT_TRUE(has(product(4, "bf16", "f32", "result=\"f32\", ", "f32")));
  EXPECT_FALSE(has(product(20, "f16", "f16", "", "f16")));
  EXPECT_FALSE(has(product(20, "f16", "f32", "result=\"f32\", ", "f32")));
  EXPECT_FALSE(has(product(4, "f32", "f16", "result=\"f32\", ", "f32")));
  EXPECT_FALSE(has(product(20, "f32", "f32", "accumulator=\"f16\", ", "f32")));
}

// By whatever kernel, or by none: both operands are read as what they are.
TEST(CpuMatmulKernel, ComputesEveryPairOfTypes) {
  for (int rows : {4, 20})
    for (const char* a : {"f32", "bf16", "f16"})
      for (const char* b : {"f32", "bf16", "f16"}) {
        Graph graph = product(rows, a, b, "result=\"f32\", ", "f32");
        std::vector<HostTensor> arguments = random_arguments(graph);
        Interpretation got = run_on_cpu(graph, arguments), want = interpret(graph, arguments);
        for (size_t i = 0; i < want.results[0].data.size(); ++i)
          ASSERT_NEAR(got.results[0][i], want.results[0][i], 1e-5) << rows << " " << a << " " << b;
      }
}

}  // namespace
}  // namespace tokamak::test
