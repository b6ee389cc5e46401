// Scratch memory of a step's kernels on the device, against what the plan expected.
#include "compile/step_compiler.h"
#include "config/config.h"
#include "ops/group.h"
#include "tests/backend/cuda/model/gpu_session.h"
#include "tests/support/resolve_first.h"

namespace tokamak::test {
namespace {

// Libraries choose on the device; what cuBLASLt may take at most is the only bound.
TEST(GpuScratch, ASessionTakesNoMoreThanPlannedOrAllowed) {
  constexpr int64_t kAllowed = int64_t(128) << 20;
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16})
    for (bool fuse : {true, false})
      for (int64_t width : {128, 768}) {
        RunConfig config = small_run();
        config.model.width = width;
        config.model.heads = width / 64;
        config.train.batch = 128;  // enough heads for Hopper's own kernels
        config.compile.precision = precision;
        if (!fuse) config.compile.disable_passes = {"fuse"};
        Session session = make_session(config, gpu_platform(), gpu_backend());
        int64_t planned = session.compiled().scratch_bytes(), taken = session.workspace_bytes();
        std::string what = fmt::format("{}_width_{}_fuse_{}", precision_name(precision), width, fuse);
        EXPECT_LE(taken, std::max(planned, kAllowed)) << what;
        RecordProperty(what, fmt::format("planned {}, taken {}", planned, taken));
      }
}

TEST(GpuScratch, EveryKernelButLibrariesIsPlannedExactly) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
    RunConfig config = small_run();
    config.compile.precision = precision;
    config.compile.disable_passes = {"chunked_classifier"};
    Platform platform = gpu_platform();
    CompiledStep step = compile_step(config, platform);
    for (const Launch& launch : step.programs[0].plan.launches) {
      const Graph& graph = step.programs[0].plan.graph;
      const Node& node = graph.nodes()[size_t(launch.node)];
      bool matmul = node.op->name == "matmul" || node.op == &op::fused_matmul;
      if (matmul || node.op->name == "attention_grad" || node.op->name == "attention") continue;
      EXPECT_EQ(gpu_backend().compile(graph, node)->workspace_bytes(), platform.kernels->scratch_bytes(graph, node))
          << precision_name(precision) << ' ' << node.op->name;
    }
  }
}

}  // namespace
}  // namespace tokamak::test
