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

INSTANTIATE_TEST_SUITE_P(Bodies, Codegen, ::testing::ValuesIn(test::group_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tokamak::cuda
