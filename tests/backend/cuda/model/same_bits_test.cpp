// What must not change a single bit: running again, recording launches, a second stream, recomputing activations,
// stopping and resuming.
#include "compile/step_compiler.h"
#include "config/config.h"
#include "run/trainer.h"
#include "tests/backend/cuda/model/gpu_session.h"
#include "tests/e2e/finished_run.h"
#include "tests/support/quiet_observer.h"
#include "tests/support/resolve_first.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak::test {
namespace {

class SameBits : public ::testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << kNoGpu;
    config_.compile.precision = GetParam();
  }
  RunConfig config_ = small_run();
};

TEST_P(SameBits, RunTwice) { expect_same_bits(train_small(config_), train_small(config_)); }

TEST_P(SameBits, RunTwiceWithDropoutAndAccumulation) {
  config_.model.dropout = 0.1;
  config_.train.total_batch = 3 * config_.train.batch * config_.model.context;
  expect_same_bits(train_small(config_), train_small(config_));
}

TEST_P(SameBits, RecordedOrNot) {
  RunConfig eager = config_;
  eager.compile.cuda_graph = false;
  expect_same_bits(train_small(config_), train_small(eager));
}

TEST_P(SameBits, OneStreamOrTwoRecordedOrNot) {
  RunTrace one = train_small(config_);
  config_.compile.streams = 2;
  expect_same_bits(one, train_small(config_));
  config_.compile.cuda_graph = false;
  expect_same_bits(one, train_small(config_));
}

TEST_P(SameBits, OneStreamOrTwoWithAccumulationAndRecomputation) {
  config_.model.layers = 8;
  config_.train.total_batch = 3 * config_.train.batch * config_.model.context;
  config_.compile.memory_budget_gib = 0.015;
  RunTrace one = train_small(config_);
  config_.compile.streams = 2;
  expect_same_bits(one, train_small(config_));
}

TEST_P(SameBits, RecomputedOrKept) {
  config_.model.layers = 8;
  Platform platform = gpu_platform();
  int64_t kept = compile_step(config_, platform).programs[0].plan.arena_bytes;
  RunConfig recomputed = config_;
  recomputed.compile.memory_budget_gib = 0.7 * double(kept) / double(int64_t(1) << 30);
  ASSERT_LT(compile_step(recomputed, platform).programs[0].plan.arena_bytes, kept);
  expect_same_bits(train_small(config_), train_small(recomputed));
}

TEST_P(SameBits, RecomputedTwiceAndRecordedOrNot) {
  config_.model.layers = 8;
  config_.compile.memory_budget_gib = 0.015;
  RunTrace first = train_small(config_);
  expect_same_bits(first, train_small(config_));
  config_.compile.cuda_graph = false;
  expect_same_bits(first, train_small(config_));
}

INSTANTIATE_TEST_SUITE_P(Precisions, SameBits,
                         ::testing::Values(Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16),
                         [](const auto& info) { return std::string(precision_name(info.param)); });

class GpuResume : public ::testing::TestWithParam<Precision> {};

TEST_P(GpuResume, TenAndTenAreTwenty) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  TemporaryFolder folder;
  make_tiny_data(folder.path());
  auto run = [&](const char* out, int64_t stop_after) {
    RunConfig config = tiny_config(folder.path());
    config.compile.precision = GetParam();
    config.model.dropout = 0.1;
    config.train.out = (folder / out).string();
    QuietObserver quiet;
    int64_t asked = 0;
    return train(config, gpu_platform(), gpu_backend(), quiet, [&] { return ++asked == stop_after; });
  };
  run("straight", 0);
  EXPECT_TRUE(run("broken", 10).stopped);
  EXPECT_EQ(run("broken", 0).steps, 20);
  expect_same(read_run(folder / "straight", 20), read_run(folder / "broken", 20));
}

// Copies of some milliseconds, beside steps that take less.
TEST(GpuSaves, BesideTheStepsAreThoseThatWait) {
  if (!has_gpu()) GTEST_SKIP() << kNoGpu;
  TemporaryFolder folder;
  make_tiny_data(folder.path());
  auto run = [&](const char* out, bool in_background) {
    RunConfig config = tiny_config(folder.path());
    config.model.layers = 3;
    config.model.heads = 6;
    config.model.width = 384;
    config.train.out = (folder / out).string();
    config.train.steps = 12;
    config.train.checkpoint_every = 2;
    config.train.keep_checkpoints = 20;
    config.train.background_saves = in_background;
    QuietObserver quiet;
    train(config, gpu_platform(), gpu_backend(), quiet, [] { return false; });
  };
  run("waits", false);
  run("beside", true);
  for (int64_t step = 2; step <= 12; step += 2)
    expect_same(read_run(folder / "waits", step), read_run(folder / "beside", step));
}

INSTANTIATE_TEST_SUITE_P(Precisions, GpuResume, ::testing::Values(Precision::kFp32, Precision::kBf16, Precision::kFp16),
                         [](const auto& info) { return std::string(precision_name(info.param)); });

}  // namespace
}  // namespace tokamak::test
