// A run that stops and goes on is the run that never stopped, bit for bit. Here in one process; with real signals in
// kill_test.cpp.
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/e2e/finished_run.h"
#include "tests/e2e/small_run.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

using test::expect_same;
using test::FinishedRun;
using test::read_run;

class ResumeTest : public test::SmallRun {
 protected:
  /// 20 steps straight, and 10 + 10 in another folder.
  void expect_resumes(RunConfig straight) {
    straight.train.out = (folder_ / "straight").string();
    run(straight);
    RunConfig broken = straight;
    broken.train.out = (folder_ / "broken").string();
    TrainSummary first = run(broken, 10);
    EXPECT_TRUE(first.stopped);
    EXPECT_EQ(first.steps, 10);
    TrainSummary second = run(broken);
    EXPECT_FALSE(second.stopped);
    EXPECT_EQ(second.steps, kSteps);
    EXPECT_NE(listener_.messages.find("resuming after step 10"), std::string::npos);
    expect_same(read_run(straight.train.out, kSteps), read_run(broken.train.out, kSteps));
  }
};

TEST_F(ResumeTest, Plain) { expect_resumes(config("run")); }

TEST_F(ResumeTest, WithDropout) {
  RunConfig c = config("run");
  c.model.dropout = 0.1;
  expect_resumes(c);
}

TEST_F(ResumeTest, WithAccumulation) {
  RunConfig c = config("run");
  c.train.total_batch = 3 * 2 * 16;
  expect_resumes(c);
}

TEST_F(ResumeTest, WithDropoutAndAccumulation) {
  RunConfig c = config("run");
  c.model.dropout = 0.1;
  c.train.total_batch = 3 * 2 * 16;
  expect_resumes(c);
}

TEST_F(ResumeTest, InBf16WithoutBiasesAndWithAHeadOfItsOwn) {
  RunConfig c = config("run");
  c.model.dropout = 0.1;
  c.model.bias = c.model.tie_weights = false;
  c.compile.precision = Precision::kBf16;
  expect_resumes(c);
}

TEST_F(ResumeTest, WithAnotherOptimizer) {
  RunConfig c = config("run");
  c.optimizer.name = "sgd";
  c.train.total_batch = 3 * 2 * 16;
  expect_resumes(c);
}

// The first scale overflows, so that the run also skips; then it grows again every few steps, across the break too.
TEST_F(ResumeTest, InFp16WithItsLossScale) {
  for (int64_t total_batch : {0, 3 * 2 * 16}) {
    RunConfig c = config("run");
    c.train.total_batch = total_batch;
    c.compile.precision = Precision::kFp16;
    c.compile.loss_scale = 1e7;
    c.compile.loss_scale_growth_interval = 3;
    expect_resumes(c);
    auto steps = read_run(folder_ / "straight", kSteps).steps;
    EXPECT_EQ(steps.front().grad_norm, -1) << "skipped";
    EXPECT_GT(std::count_if(steps.begin(), steps.end(), [](auto& s) { return s.grad_norm > 0; }), 8);
    std::filesystem::remove_all(folder_ / "straight");
    std::filesystem::remove_all(folder_ / "broken");
  }
}

TEST_F(ResumeTest, GoesOnInAnotherPrecisionThanFp16AndBack) {
  RunConfig c = config("run");
  for (Precision precision : {Precision::kFp16, Precision::kFp32, Precision::kFp16}) {
    c.compile.precision = precision;
    c.train.steps = c.train.resume && std::filesystem::exists(folder_ / "run") ? c.train.steps + 5 : 5;
    EXPECT_EQ(run(c).steps, c.train.steps) << precision_name(precision);
  }
}

TEST_F(ResumeTest, WithEverythingOff) {
  RunConfig c = config("run");
  c.model.dropout = 0.1;
  c.compile.disable_passes = {"fuse", "flash_attention", "pad_vocab", "fused_optimizer"};
  c.compile.async = false;
  expect_resumes(c);
}

TEST_F(ResumeTest, AfterACrashFromTheCheckpointBeforeIt) {
  RunConfig straight = config("straight"), broken = config("broken");
  straight.model.dropout = broken.model.dropout = 0.1;
  broken.train.checkpoint_every = 5;
  run(straight);
  listener_.throw_at_step = 13;
  EXPECT_THROW(run(broken), std::runtime_error);
  listener_.throw_at_step = 0;
  run(broken);
  EXPECT_NE(listener_.messages.find("resuming after step 10"), std::string::npos) << listener_.messages;
  expect_same(read_run(straight.train.out, kSteps), read_run(broken.train.out, kSteps));
}

TEST_F(ResumeTest, StoppedAfterEveryStep) {
  RunConfig straight = config("straight"), broken = config("broken");
  straight.model.dropout = broken.model.dropout = 0.1;
  run(straight);
  for (int64_t i = 0; i < kSteps; ++i) run(broken, 1);
  expect_same(read_run(straight.train.out, kSteps), read_run(broken.train.out, kSteps));
}

TEST_F(ResumeTest, TwoRunsGiveTheSameBits) {
  RunConfig a = config("a"), b = config("b");
  a.model.dropout = b.model.dropout = 0.1;
  run(a);
  run(b);
  FinishedRun first = read_run(a.train.out, kSteps);
  expect_same(first, read_run(b.train.out, kSteps));
  ASSERT_EQ(first.steps.size(), size_t(kSteps));
  EXPECT_LT(first.steps.back().loss, first.steps.front().loss);
}

TEST_F(ResumeTest, WatchingChangesNothing) {
  RunConfig plain = config("plain"), watched = config("watched");
  plain.model.dropout = watched.model.dropout = 0.1;
  watched.train.eval_every = 3;
  watched.train.eval_batches = 2;
  watched.train.sample_every = 4;
  watched.train.sample_tokens = 40;  // beyond the context
  watched.train.checkpoint_every = 7;
  watched.compile.async = false;
  run(plain);
  TrainSummary summary = run(watched);
  EXPECT_TRUE(summary.val_loss && summary.bits_per_byte);
  EXPECT_EQ(listener_.samples, 5);
  expect_same(read_run(plain.train.out, kSteps), read_run(watched.train.out, kSteps));
}

// The rates behind `auto` are measured at every start, so the choice could be another one after a restart.
TEST_F(ResumeTest, AutomaticPrecisionStaysWhatItWas) {
  RunConfig straight = config("straight"), broken = config("broken");
  straight.compile.precision = broken.compile.precision = Precision::kAuto;
  Platform likes_bf16 = cpu::nominal_platform(), likes_fp32 = likes_bf16;
  likes_bf16.target.bf16_flops = 2 * likes_bf16.target.f32_flops;
  likes_fp32.target.bf16_flops = likes_fp32.target.f32_flops / 2;
  run(straight, 0, likes_bf16);
  run(broken, 10, likes_bf16);
  run(broken, 0, likes_fp32);
  expect_same(read_run(straight.train.out, kSteps), read_run(broken.train.out, kSteps));
}

TEST_F(ResumeTest, AFreshStartIgnoresWhatIsThere) {
  RunConfig c = config("run");
  run(c);
  FinishedRun before = read_run(c.train.out, kSteps);
  c.train.resume = false;
  run(c);
  expect_same(before, read_run(c.train.out, kSteps));
}

// Else the next start would go on with the run that was to be replaced.
TEST_F(ResumeTest, AFreshStartThatIsKilledBeforeItsFirstSaveIsGoneOnWith) {
  RunConfig older = config("run"), straight = config("straight");
  older.train.seed = 7;
  run(older);
  RunConfig fresh = config("run");
  fresh.train.resume = false;
  listener_.throw_at_step = 6;
  EXPECT_THROW(run(fresh), std::runtime_error);
  listener_.throw_at_step = 0;
  fresh.train.resume = true;
  run(fresh);
  run(straight);
  expect_same(read_run(straight.train.out, kSteps), read_run(fresh.train.out, kSteps));
}

TEST_F(ResumeTest, SaysWhatChanged) {
  RunConfig c = config("run");
  run(c, 10);
  run(c, 2);
  EXPECT_EQ(listener_.messages.find("changed"), std::string::npos) << listener_.messages;
  c.train.steps = 40;
  c.optimizer.lr *= 2;
  c.optimizer.weight_decay = 0.25;
  c.train.batch = 3;
  c.threads = 1;
  run(c);
  for (const char* piece :
       {"changed since step 12: ", "optimizer.lr 0.0006 -> 0.0012", "optimizer.weight_decay 0.1 -> 0.25",
        "train.steps 20 -> 40", "train.batch 2 -> 3", "the next step's learning rate is"})
    EXPECT_NE(listener_.messages.find(piece), std::string::npos) << piece << "\n" << listener_.messages;
  EXPECT_EQ(listener_.messages.find("threads"), std::string::npos) << listener_.messages;
}

TEST_F(ResumeTest, RefusesOtherHeads) {
  RunConfig c = config("run");
  run(c);
  c.model.heads = 4;
  c.train.steps = 30;
  expect_user_error([&] { run(c); }, {"expected model.heads = 2", "another function", "got 4", "--train.out"});
}

TEST_F(ResumeTest, WarnsOfAVocabularyFarBeyondTheData) {
  RunConfig c = config("run");
  run(c, 1);
  EXPECT_EQ(listener_.messages.find("model.vocab"), std::string::npos) << listener_.messages;
  c.train.out = (folder_ / "large").string();
  c.model.vocab = 5000;
  run(c, 1);
  EXPECT_NE(listener_.messages.find("model.vocab = 5000, but the data has only 301"), std::string::npos)
      << listener_.messages;
}

TEST_F(ResumeTest, AFinishedRunHasNothingToDo) {
  RunConfig c = config("run");
  run(c);
  FinishedRun before = read_run(c.train.out, kSteps);
  TrainSummary summary = run(c);
  EXPECT_FALSE(summary.stopped);
  EXPECT_NE(listener_.messages.find("nothing to do"), std::string::npos);
  expect_same(before, read_run(c.train.out, kSteps));
}

}  // namespace
}  // namespace tokamak
