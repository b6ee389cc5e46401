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

}  // namespace
}  // namespace tokamak::test
