// Generated kernels on the GPU against the interpreter: bodies of every form, in awkward sizes.
#include "tests/backend/cuda/gpu_harness.h"
#include "tests/backend/cuda/group_bodies.h"
#include "tests/support/random_tensors.h"

#include <fmt/core.h>

namespace tokamak::test {
namespace {

class GpuGroup : public ::testing::TestWithParam<GroupCase> {};

TEST_P(GpuGroup, EqualsInterpreter) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (const Shape& space : group_spaces(GetParam())) {
    Graph graph = make_group(GetParam(), space[0], space[1]);
    SCOPED_TRACE(fmt::format("{} over ({}, {})", GetParam().name, space[0], space[1]));
    Tolerance tolerance = tolerance_of(lowest_dtype(*graph.nodes()[0].body));
    expect_gpu_equals(graph, graph, random_arguments(graph, 7, std::min<int64_t>(space[1], 9)), tolerance);
  }
}

TEST_P(GpuGroup, GivesTheSameBitsTwice) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  Graph graph = make_group(GetParam(), 1000, 768);
  expect_deterministic(graph, random_arguments(graph, 3));
}

INSTANTIATE_TEST_SUITE_P(Bodies, GpuGroup, ::testing::ValuesIn(group_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tokamak::test
