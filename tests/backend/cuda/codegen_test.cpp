// The texts of generated kernels compile without a GPU: in all sizes for one architecture, in one for all, and those of
// a training step in every precision for the oldest and the newest.
#include "backend/cuda/codegen/function.h"
#include "backend/cuda/codegen/group_source.h"
#include "backend/cuda/cuda_backend.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "graph/builder.h"
#include "ops/generate.h"
#include "ops/group.h"
#include "ops/group_form.h"
#include "ops/matmul_form.h"
#include "ops/pointwise.h"
#include "passes/form_groups.h"
#include "passes/fuse.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/group_bodies.h"
#include "tests/support/graph_text.h"
#include "tests/support/resolve_first.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <set>

namespace tokamak::cuda {
namespace {

using test::GroupCase;

constexpr int64_t kLeastSharedBytes = 99 << 10;  // of a block, on the supported devices: 8.6, 8.9 and 12.0

std::vector<std::string> functions_of(const GroupCode& code) {
  std::vector<std::string> functions;
  for (const GroupLaunch& launch : code.launches) functions.push_back(launch.function);
  return functions;
}

class Codegen : public ::testing::TestWithParam<GroupCase> {};

TEST_P(Codegen, CompilesForAllSpaces) {
  for (const Shape& space : test::group_spaces(GetParam())) {
    Graph graph = test::make_group(GetParam(), space[0], space[1]);
    GroupCode code = generate_group(graph.nodes()[0]);
    std::string binary = compile_device_code(code.source, {9, 0});
    for (const GroupLaunch& launch : code.launches) {
      EXPECT_NE(binary.find(launch.function), std::string::npos) << code.source;
      EXPECT_LE(launch.threads_x * launch.threads_y, 1024) << code.source;
      EXPECT_GT(launch.blocks_x * launch.blocks_y, 0) << code.source;
      EXPECT_LE(launch.blocks_y, 65535) << code.source;
    }
  }
}

TEST_P(Codegen, CompilesForAllArchitectures) {
  GroupCode code = generate_group(test::make_group(GetParam(), 128, 768).nodes()[0], kLeastSharedBytes);
  test::expect_compiles(code.source, functions_of(code), test::checked_architectures());
}

// Rows that lie in shared memory: no more of it than the device has.
TEST_P(Codegen, StaysWithinSharedMemory) {
  for (int64_t shared_bytes : {kLeastSharedBytes, int64_t(163) << 10, int64_t(227) << 10})
    for (const Shape& space : test::group_spaces(GetParam())) {
      Graph graph = test::make_group(GetParam(), space[0], space[1]);
      for (const GroupLaunch& launch : generate_group(graph.nodes()[0], shared_bytes).launches)
        EXPECT_LE(launch.shared_bytes, shared_bytes) << space[0] << " x " << space[1];
    }
}

// A number that f32 cannot hold is infinite there, as it is on the CPU.
TEST(CodegenLiterals, BeyondSinglePrecisionAreInfinite) {
  Graph graph("g");
  GraphBuilder g(graph);
  ValueId x = g.input("x", {DType::kF32, {8, 64}});
  graph.add_result("y", minimum(g, maximum(g, x, constant(g, -1e300)), constant(g, 1e300)));
  form_groups(graph, {});
  fuse(graph, {});
  ASSERT_EQ(graph.nodes().size(), 1u);
  std::string source = generate_group(graph.nodes()[0]).source;
  EXPECT_NE(source.find("-HUGE_VALF"), source.npos) << source;
  EXPECT_EQ(source.find("inff"), source.npos) << source;
  EXPECT_NO_THROW(compile_device_code(source, {9, 0}));
}

// The function of a fused_matmul, as the own matmul calls it: of the product and, where there is one, the operand.
std::string function_of(const std::string& function) {
  Graph graph = test::parse(fmt::format(R"(graph g {{
    input a = %0 : bf16[6,4]
    input b = %1 : bf16[4,5]
    input c = %2 : bf16[6,5]
    %3 = fused_matmul(%0, %1, %2) : bf16[6,5] {{
      graph body {{
        input a0 = %0 : bf16[6,4]
        input a1 = %1 : bf16[4,5]
        input a2 = %2 : bf16[6,5]
        %3 = matmul(%0, %1) {{trans_a=false, trans_b=false}} : bf16[6,5]
        {}
      }}
    }}
    result y = %3
  }})",
                                        function));
  return function_source(*read_matmul(graph, graph.nodes()[0]).function);
}

TEST(CodegenFunction, TakesItsOperandsInTheirOrder) {
  EXPECT_EQ(function_of("%4 = gelu_grad(%2, %3) : bf16[6,5] result r0 = %4"),
            "__device__ inline float finish(float v0, float v1) {\n  return scalar::gelu_grad(v1, v0);\n}\n");
  EXPECT_EQ(function_of("%4 = sub(%3, %2) : bf16[6,5] result r0 = %4"),
            "__device__ inline float finish(float v0, float v1) {\n  return scalar::sub(v0, v1);\n}\n");
}

// Rounded between its ops, as if what lies there had been stored; the last one is rounded where it is.
TEST(CodegenFunction, RoundsWhatLiesBetween) {
  EXPECT_EQ(function_of("%4 = tanh(%3) : bf16[6,5] %5 = mul(%4, %2) : bf16[6,5] result r0 = %5"),
            "__device__ inline float finish(float v0, float v2) {\n"
            "  const float v1 = rounded<tokamak::bf16>(scalar::hyperbolic_tangent(v0));  // tanh\n"
            "  return scalar::mul(v1, v2);\n}\n");
}

Plan plan_of_a_step(Precision precision, int64_t context = 1, double dropout = 0.1) {
  RunConfig config;
  config.model.layers = 1, config.model.heads = 2, config.model.width = 128, config.model.context = 64;
  config.model.vocab = 300, config.model.dropout = dropout;
  config.train.batch = 2;
  config.mesh.context = context;
  config.compile.precision = precision;
  return compile_step(config, nominal_platform()).programs[0].plan;
}

// The groups of a plan; equal texts once.
std::set<std::string> texts_of(const Plan& plan) {
  std::set<std::string> texts;
  for (const Node& node : plan.graph.nodes())
    if (is_matrix_group(node)) texts.insert(generate_group(node, kLeastSharedBytes).source);
  return texts;
}

class CodegenStep : public ::testing::TestWithParam<Precision> {};

TEST_P(CodegenStep, CompilesForTheOldestAndTheNewestArchitecture) {
  std::set<std::string> texts = texts_of(plan_of_a_step(GetParam()));
  EXPECT_GT(texts.size(), 5u);
  for (const std::string& text : texts) test::expect_compiles(text, {}, {{8, 0}, {12, 0}});
}

TEST_P(CodegenStep, CompilesForARankThatHasPiecesOfASequence) {
  std::set<std::string> texts;
  for (double dropout : {0.0, 0.1}) texts.merge(texts_of(plan_of_a_step(GetParam(), 4, dropout)));
  for (const std::string& text : texts) test::expect_compiles(text, {}, test::one_architecture());
}

INSTANTIATE_TEST_SUITE_P(Precisions, CodegenStep,
                         ::testing::Values(Precision::kFp32, Precision::kBf16, Precision::kFp16),
                         [](const auto& info) { return std::string(precision_name(info.param)); });

TEST(GeneratedSource, IsThatOfGroups) {
  Plan plan = plan_of_a_step(Precision::kBf16);
  for (const Node& node : plan.graph.nodes())
    EXPECT_EQ(generated_source(node).empty(), !is_matrix_group(node)) << node.op->name;
}

std::string source_of(const std::string& name, int64_t rows, int64_t cols) {
  for (const GroupCase& c : test::group_cases())
    if (c.name == name) return generate_group(test::make_group(c, rows, cols).nodes()[0]).source;
  return "";
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(CodegenRow, WorksOnAVocabularyWithoutComparingEachColumn) {
  std::string wide = source_of("cross_entropy_both", 16, 50304), narrow = source_of("cross_entropy_both", 16, 512);
  EXPECT_TRUE(has(wide, "= pick(x") && has(wide, "add_packed(top") && has(wide, "hit.value ? scalar::equal")) << wide;
  EXPECT_FALSE(has(narrow, "= pick(x") || has(narrow, "hit.value")) << narrow;  // the row is in registers
}

// The cap rises: the largest logit and the target's are found among those that are not capped.
TEST(CodegenRow, CapsOneNumberARowForLargestAndTarget) {
  std::string wide = source_of("cross_entropy_capped", 16, 50304);
  EXPECT_TRUE(has(wide, "= pick(x") && has(wide, "add_packed(top") && has(wide, "hit.value ? scalar::equal")) << wide;
}

TEST(CodegenRow, ExponentialsAreCoarseOnlyWhereResultsAre) {
  EXPECT_FALSE(has(source_of("cross_entropy_both", 16, 512), "scalar::exponential"));
  EXPECT_FALSE(has(source_of("softmax_lse", 16, 512), "coarse_exp"));  // f32 results
  EXPECT_FALSE(has(source_of("functions", 16, 512), "coarse_exp"));
}

TEST(CodegenRow, LoadsAheadWhatFitsInRegisters) {
  EXPECT_TRUE(has(source_of("layer_norm_gradient_low", 4096, 768), "now = next"));
  EXPECT_FALSE(has(source_of("layer_norm_gradient", 4096, 768), "now = next"));
}

INSTANTIATE_TEST_SUITE_P(Bodies, Codegen, ::testing::ValuesIn(test::group_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tokamak::cuda
