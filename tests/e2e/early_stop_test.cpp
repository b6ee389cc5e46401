// Training that ends early by its validation losses, and the best checkpoint. Here in one process; on a mesh in
// mesh_run_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "checkpoint/checkpoint.h"
#include "tests/e2e/finished_run.h"
#include "tests/e2e/small_run.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::expect_same;
using test::read_run;

class EarlyStopTest : public test::SmallRun {
 protected:
  RunConfig config(const std::string& out) const {
    RunConfig config = SmallRun::config(out);
    config.train.eval_every = 2;
    config.train.eval_batches = 2;
    return config;
  }
  /// No loss is so much lower: the evaluations after steps 4 and 6 end it.
  RunConfig ending(const std::string& out) const {
    RunConfig ends = config(out);
    ends.train.patience = 2;
    ends.train.min_improvement = 100;
    return ends;
  }

  static std::set<int64_t> saved_steps(const RunConfig& config) {
    std::set<int64_t> steps;
    for (const fs::path& path : list_checkpoints(checkpoints_folder(config.train.out)))
      steps.insert(step_of_checkpoint(path));
    return steps;
  }
  static int64_t best_step(const RunConfig& config) {
    return open_checkpoint(checkpoints_folder(config.train.out) / "best", nullptr).state.step;
  }
};

TEST_F(EarlyStopTest, EndsWithACheckpointAndSaysWhy) {
  RunConfig ends = ending("run");
  TrainSummary summary = run(ends);
  EXPECT_EQ(summary.steps, 6);
  EXPECT_FALSE(summary.stopped);
  EXPECT_TRUE(was_told("after step 6 ended early: the last 2 validation losses were not lower than"))
      << listener_.messages;
  EXPECT_TRUE(saved_steps(ends).contains(6));
  EXPECT_EQ(run(ends).steps, 6) << "it stays ended";
  EXPECT_TRUE(was_told("ended early")) << listener_.messages;
  ends.train.patience = 4;
  EXPECT_EQ(run(ends).steps, 10) << "those before count";
  ends.train.patience = 0;
  EXPECT_EQ(run(ends).steps, 20);
}

TEST_F(EarlyStopTest, EndsAtTheSameStepWhereverItStopped) {
  RunConfig straight = ending("straight");
  run(straight);
  for (int64_t step : {3, 4, 5}) {
    RunConfig broken = ending("broken" + std::to_string(step));
    EXPECT_TRUE(run(broken, step).stopped);
    EXPECT_EQ(run(broken).steps, 6) << step;
    expect_same(read_run(straight.train.out, 6), read_run(broken.train.out, 6));
  }
}

// Nothing is learned: all losses are equal, and the first is the best.
TEST_F(EarlyStopTest, TheBestCheckpointIsKept) {
  RunConfig c = config("run");
  c.optimizer.lr = 0;
  c.train.keep_checkpoints = 1;
  run(c);
  ASSERT_EQ(saved_steps(c).count(2), 0u);
  c.train.out += "2";
  c.train.keep_best = true;
  run(c, 5);
  run(c);
  EXPECT_TRUE(saved_steps(c).contains(2));
  EXPECT_TRUE(saved_steps(c).contains(20));
  EXPECT_EQ(best_step(c), 2);
  c.train.keep_best = false;
  c.train.steps = 21;
  run(c);
  EXPECT_FALSE(saved_steps(c).contains(2)) << "no longer asked for";
  EXPECT_FALSE(fs::is_symlink(checkpoints_folder(c.train.out) / "best"));
}

// While the loss falls each evaluation has a new best one, and those before it go.
TEST_F(EarlyStopTest, ABetterCheckpointTakesItsPlace) {
  RunConfig c = config("run");
  c.train.keep_best = true;
  c.train.keep_checkpoints = 1;
  run(c);
  EXPECT_EQ(best_step(c), 20);
  EXPECT_FALSE(saved_steps(c).contains(10));
}

// What is saved on the way to a better one pushes none of those out that are saved every so many steps.
TEST_F(EarlyStopTest, TheBestDoesNotCountAmongTheNewest) {
  RunConfig c = config("run");
  c.train.keep_best = true;
  c.train.checkpoint_every = 5;
  c.train.keep_checkpoints = 2;
  c.train.keep_every = 10;
  ASSERT_EQ(c.train.eval_every, 2);
  c.train.steps = 19;
  run(c);
  std::set<int64_t> saved = saved_steps(c);
  for (int64_t step : {10, 15, 19}) EXPECT_TRUE(saved.contains(step)) << step;
  for (int64_t step : {5, 12, 14}) EXPECT_FALSE(saved.contains(step)) << step;
  EXPECT_EQ(best_step(c), 19);
}

// As a crash leaves it: the evaluated state saved but not marked, or not even its loss written.
TEST_F(EarlyStopTest, ACrashBeforeTheMarkLosesNothing) {
  RunConfig straight = config("straight");
  straight.train.keep_best = true;
  run(straight);
  for (bool at_saved : {false, true}) {
    RunConfig c = config(at_saved ? "saved" : "step");
    c.train.keep_best = true;
    c.train.keep_checkpoints = 1;
    c.train.checkpoint_every = at_saved ? 8 : 0;  // then it is saved before it is evaluated
    c.train.background_saves = false;
    (at_saved ? listener_.throw_at_saved : listener_.throw_at_step) = 8;
    EXPECT_THROW(run(c), std::runtime_error);
    listener_.throw_at_saved = listener_.throw_at_step = 0;
    ASSERT_TRUE(saved_steps(c).contains(8));
    run(c, at_saved ? 2 : 1);  // it looks before both batches of an evaluation, too
    EXPECT_TRUE(saved_steps(c).contains(8));
    EXPECT_EQ(best_step(c), 8);
    run(c);
    EXPECT_EQ(best_step(c), 20);
    expect_same(read_run(straight.train.out, 20), read_run(c.train.out, 20));
  }
}

}  // namespace
}  // namespace tokamak
