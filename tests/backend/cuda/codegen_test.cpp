// The texts of generated kernels compile without a GPU, for the oldest, a middle and the newest architecture.
#include "backend/cuda/codegen/group_source.h"

#include "backend/cuda/nvrtc.h"
#include "tests/backend/cuda/group_bodies.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace tokamak::cuda {
namespace {

using test::GroupCase;

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
  std::string source = group_source(test::make_group(GetParam(), 128, 768).nodes()[0]);
  for (Architecture a : {Architecture{8, 0}, {12, 0}})
    EXPECT_GT(compile_device_code(source, a).size(), 1000u) << source;
}

std::string source_of(const std::string& name, int64_t rows, int64_t cols) {
  for (const GroupCase& c : test::group_cases())
    if (c.name == name) return group_source(test::make_group(c, rows, cols).nodes()[0]);
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
