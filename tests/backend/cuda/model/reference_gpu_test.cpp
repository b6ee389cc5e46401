// What runs on the host inside a GPU's step is what was expected to, and is refused where that is asked for.
#include "run/reference_nodes.h"
#include "tests/backend/cuda/model/gpu_session.h"
#include "tests/support/expect_error.h"
#include "tests/support/resolve_first.h"

namespace tokamak::test {
namespace {

// Heads that are too large for the own kernels are so in fp32 for certain; of 16-bit ones cuDNN decides at the device.
TEST(GpuReference, NodesAreThoseOfThePlan) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  struct Case {
    Precision precision;
    int64_t heads;
  };
  for (auto [precision, heads] : {Case{Precision::kFp32, 1}, Case{Precision::kFp32, 16}, Case{Precision::kBf16, 16},
                                  Case{Precision::kFp16, 16}}) {
    RunConfig config = small_run();
    config.model.width = 1024;
    config.model.heads = heads;
    config.compile.precision = precision;
    Platform platform = gpu_platform();
    Session session = make_session(config, platform, gpu_backend());
    EXPECT_EQ(list_kernels(session.reference_nodes()),
              list_kernels(find_reference_nodes(session.compiled(), *platform.kernels)))
        << precision_name(precision) << ", " << heads << " heads";
  }
}

TEST(GpuReference, IsRefusedWithStrict) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  RunConfig config = small_run();
  config.model.width = 1024;
  config.model.heads = 1;
  config.compile.precision = Precision::kFp32;
  EXPECT_NE(reference_warning(make_session(config, gpu_platform(), gpu_backend()).reference_nodes()), "");
  config.compile.strict = true;
  expect_user_error([&] { make_session(config, gpu_platform(), gpu_backend()); },
                    {"[compile] expected a kernel for every node", "attention"});
}

}  // namespace
}  // namespace tokamak::test
