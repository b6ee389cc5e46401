#include "ops/matmul_formats.h"

#include "base/error.h"
#include "cost/flop_rate.h"
#include "graph/single_node.h"
#include "ops/matmul.h"
#include "tests/support/graph_text.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace tokamak {
namespace {

constexpr NumberFormat kAll[] = {NumberFormat::kF32, NumberFormat::kTf32, NumberFormat::kBf16, NumberFormat::kF16};

// A product of operands of these types.
Graph product(std::string_view a, std::string_view b, std::string_view attrs, std::string_view result) {
  return test::parse(fmt::format(R"(graph g {{
    input a = %0 : {}[2,3]
    input b = %1 : {}[3,4]
    %2 = matmul(%0, %1) {{{}trans_a=false, trans_b=false}} : {}[2,4]
    result y = %2
  }})",
                                 a, b, attrs, result));
}

MatmulFormats formats_of(const Graph& graph) { return matmul_formats(spec_of(graph, graph.nodes()[0])); }

TEST(MatmulFormats, ANodeSaysWhatItsTypesDoNot) {
  EXPECT_EQ(formats_of(product("bf16", "bf16", "", "bf16")), uniform_formats(NumberFormat::kBf16));
  EXPECT_EQ(formats_of(product("f32", "f32", "tf32=true, ", "f32")), uniform_formats(NumberFormat::kTf32));
  EXPECT_EQ(formats_of(product("f16", "f16", "accumulator=\"f16\", result=\"f32\", ", "f32")),
            (MatmulFormats{NumberFormat::kF16, NumberFormat::kF16, DType::kF16, DType::kF32}));
  EXPECT_EQ(formats_of(product("bf16", "f32", "result=\"bf16\", tf32=true, ", "bf16")),
            (MatmulFormats{NumberFormat::kBf16, NumberFormat::kTf32, DType::kF32, DType::kBF16}));
}

// What is the default is not printed, so that plans as texts stay.
TEST(MatmulFormats, OnlyWhatIsNoDefaultBecomesAnAttribute) {
  for (NumberFormat format : kAll) {
    Attrs attrs;
    set_formats(attrs, uniform_formats(format));
    EXPECT_EQ(attrs.empty(), format != NumberFormat::kTf32) << format_name(format);
  }
}

TEST(MatmulFormats, AreReadAsTheyWereSet) {
  for (NumberFormat a : kAll)
    for (NumberFormat b : kAll)
      for (DType result : {DType::kF32, DType::kBF16, DType::kF16})
        for (DType accumulator : {DType::kF32, DType::kF16}) {
          MatmulFormats formats{a, b, accumulator, result};
          Attrs attrs{{"trans_a", false}, {"trans_b", false}};
          bool mixes_f32 = a != b && storage_of(a) == DType::kF32 && storage_of(b) == DType::kF32;
          if (mixes_f32) {
            EXPECT_THROW(set_formats(attrs, formats), InternalError);
            continue;
          }
          set_formats(attrs, formats);
          Graph graph;
          ValueIds operands{graph.add_argument(Argument::Kind::kInput, "a", {storage_of(a), {2, 3}}),
                            graph.add_argument(Argument::Kind::kInput, "b", {storage_of(b), {3, 4}})};
          NodeSpec spec{op::matmul, OperandTypes(graph, operands), attrs};
          EXPECT_EQ(matmul_formats(spec), formats) << format_name(a) << " " << format_name(b);
          EXPECT_EQ(op::matmul.infer(spec)[0].dtype, result);
        }
}

// What was measured or chosen of one product says nothing of another.
TEST(MatmulFormats, KernelsAreNamedByThem) {
  std::set<std::string> keys;
  int graphs = 0;
  for (const Graph& graph :
       {product("f32", "f32", "", "f32"), product("f32", "f32", "tf32=true, ", "f32"),
        product("bf16", "bf16", "", "bf16"), product("bf16", "bf16", "result=\"f32\", ", "f32"),
        product("bf16", "bf16", "accumulator=\"f16\", ", "bf16"), product("bf16", "f32", "result=\"f32\", ", "f32"),
        product("f32", "bf16", "result=\"f32\", ", "f32"), product("f16", "f16", "", "f16")}) {
    keys.insert(kernel_key(graph, graph.nodes()[0]));
    ++graphs;
  }
  EXPECT_EQ(int(keys.size()), graphs);
}

TEST(MatmulFormats, TheSlowerOperandIsTheRate) {
  Target target{.f32_flops = 1, .bf16_flops = 8, .tf32_flops = 4};
  auto rate = [&](const Graph& graph) { return flop_rate(graph, graph.nodes()[0], target); };
  EXPECT_EQ(rate(product("f32", "f32", "", "f32")), 1);
  EXPECT_EQ(rate(product("f32", "f32", "tf32=true, ", "f32")), 4);
  EXPECT_EQ(rate(product("bf16", "bf16", "", "bf16")), 8);
  EXPECT_EQ(rate(product("bf16", "bf16", "result=\"f32\", ", "f32")), 8);
  EXPECT_EQ(rate(product("bf16", "f32", "result=\"bf16\", ", "bf16")), 1);
  EXPECT_EQ(rate(product("f32", "f16", "result=\"f32\", tf32=true, ", "f32")), 4);
  target.tf32_flops = 0;
  EXPECT_EQ(rate(product("f32", "f32", "tf32=true, ", "f32")), 1);
}

}  // namespace
}  // namespace tokamak
