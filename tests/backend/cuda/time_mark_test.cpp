#include <gtest/gtest.h>

#include "backend/cuda/cuda_backend.h"
#include "tests/backend/cuda/gpu_harness.h"

namespace tokamak::test {
namespace {

TEST(TimeMark, StandsBetweenTheWorkBeforeAndTheWorkBehindIt) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  std::unique_ptr<Backend> backend = cuda::make_backend(0, {});
  constexpr int64_t kBytes = int64_t(1) << 28;
  std::unique_ptr<Memory> from = backend->allocate(kBytes), to = backend->allocate(kBytes);
  backend->synchronize();
  std::unique_ptr<TimeMark> start = backend->mark_time(0);
  backend->copy(to->data(), from->data(), kBytes);
  std::unique_ptr<TimeMark> middle = backend->mark_time(0);
  backend->copy(to->data(), from->data(), kBytes);
  std::unique_ptr<TimeMark> end = backend->mark_time(0);
  EXPECT_GT(middle->seconds_since(*start), 0);
  EXPECT_GT(end->seconds_since(*start), middle->seconds_since(*start));
  EXPECT_GE(backend->mark_time(1)->seconds_since(*start), 0) << "another stream has the same clock";
}

}  // namespace
}  // namespace tokamak::test
