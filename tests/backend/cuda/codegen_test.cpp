// The texts of generated kernels compile without a GPU: in all sizes for one architecture, in one for all, and those of
// a training step in every precision for the oldest and the newest.
#include "backend/cuda/codegen/group_source.h"
#include "config/config.h"
#include "ops/group.h"

#include "backend/cuda/cuda_backend.h"
#include "ops/group_form.h"
#include "tests/backend/cuda/architectures.h"
#include "tests/backend/cuda/group_bodies.h"
#include "train/step_compiler.h"

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
  test::expect_compiles(code.source, functions_of(code), test::all_architectures());
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

Plan plan_of_a_step(Precision precision) {
  RunConfig config;
  config.model.layers = 1, config.model.heads = 2, config.model.width = 128, config.model.context = 64;
  config.model.vocab = 300, config.model.dropout = 0.1;
  config.train.batch = 2;
  config.compile.precision = precision;
  return compile_step(config, nominal_platform()).programs[0].plan;
}

// The groups of the training step of a small GPT with dropout; equal texts once.
std::set<std::string> texts_of_a_step(Precision precision) {
  std::set<std::string> texts;
  Plan plan = plan_of_a_step(precision);
  for (const Node& node : plan.graph.nodes())
    if (is_matrix_group(node)) texts.insert(generate_group(node, kLeastSharedBytes).source);
  return texts;
}

class CodegenStep : public ::testing::TestWithParam<Precision> {};

TEST_P(CodegenStep, CompilesForTheOldestAndTheNewestArchitecture) {
  std::set<std::string> texts = texts_of_a_step(GetParam());
  EXPECT_GT(texts.size(), 5u);
  for (const std::string& text : texts) test::expect_compiles(text, {}, {{8, 0}, {12, 0}});
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
