// Runs whose checkpoints are written while they go on: the same files as of those that wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "backend/cpu/cpu_backend.h"
#include "base/parallel.h"
#include "checkpoint/event_log.h"
#include "checkpoint/verify.h"
#include "run/trainer.h"
#include "tests/e2e/finished_run.h"
#include "tests/support/expect_error.h"
#include "tests/support/expect_refused.h"
#include "tests/support/quiet_observer.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"
#include "tests/support/variable.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::expect_same;
using test::read_run;
using Arguments = std::vector<std::string>;

class BackgroundSaves : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  static Arguments train(const std::string& out, Arguments more) {
    more.insert(more.begin(), {"--data.path=data", "--train.out=" + out, "--train.batch=4", "--threads=1",
                               "--train.checkpoint_every=3", "--train.keep_checkpoints=20"});
    return test::tiny_arguments("train", more);
  }
  ProgramResult run(const std::string& out, const Arguments& more) {
    ProgramResult result = run_program(folder_.path(), train(out, more));
    EXPECT_EQ(result.status, 0) << result.err;
    return result;
  }

  void expect_all_same(const std::string& a, const std::string& b) const {
    for (int64_t step : {3, 6, 9, 12, 15, 18, 20}) {
      expect_same(read_run(folder_ / a, step), read_run(folder_ / b, step));
      fs::path checkpoint = checkpoints_folder(folder_ / b) / checkpoint_name(step);
      EXPECT_TRUE(check_checkpoint(checkpoint).problems.empty()) << checkpoint;
    }
  }

  TemporaryFolder folder_;
};

TEST_F(BackgroundSaves, LeaveTheFilesOfARunThatWaits) {
  run("waits", {"--train.background_saves=false"});
  ProgramResult result = run("goes_on", {});
  EXPECT_NE(result.out.find(" of the host's for saves"), std::string::npos) << result.out;
  expect_all_same("waits", "goes_on");
  for (const RunEvent& event : read_events(folder_ / "goes_on"))
    if (event.kind == RunEvent::Kind::kSave) {
      EXPECT_GT(event.stall_seconds, 0);
      EXPECT_LE(event.stall_seconds, event.seconds + 0.1) << "and the save before";
      EXPECT_GT(event.step_seconds, 0);
    }
}

TEST_F(BackgroundSaves, OfSeveralRanksAreThoseThatWait) {
  const std::vector<Arguments> meshes = {{"--mesh.data=2"},
                                         {"--mesh.data=2", "--mesh.zero=1"},
                                         {"--mesh.data=2", "--mesh.zero=2"},
                                         {"--mesh.data=2", "--mesh.zero=3"},
                                         {"--mesh.data=1", "--mesh.tensor=2"},
                                         {"--mesh.data=1", "--mesh.pipe=2"}};
  for (const char* ranks_are : {"threads", "processes"}) {
    Variable kind("TOKAMAK_RANKS", ranks_are);
    for (Arguments mesh : meshes) {
      SCOPED_TRACE(std::string(ranks_are) + " " + mesh.back());
      run("goes_on", mesh);
      mesh.emplace_back("--train.background_saves=false");
      run("waits", mesh);
      expect_all_same("waits", "goes_on");
      fs::remove_all(folder_ / "waits");
      fs::remove_all(folder_ / "goes_on");
    }
  }
}

TEST_F(BackgroundSaves, KeepTheBestAndTheNewest) {
  Arguments best = {"--train.eval_every=2", "--train.keep_best", "--train.keep_checkpoints=1", "--mesh.data=2"};
  run("goes_on", best);
  best.emplace_back("--train.background_saves=false");
  run("waits", best);
  auto names = [&](const std::string& out) {
    std::vector<std::string> names;
    for (const fs::path& path : list_checkpoints(checkpoints_folder(folder_ / out))) names.push_back(path.filename());
    for (const char* link : {"best", "latest"})
      names.push_back(fs::read_symlink(folder_ / out / "checkpoints" / link).string());
    return names;
  };
  EXPECT_EQ(names("goes_on"), names("waits"));
}

// In one process, where the test sees each step.
class BrokenSave : public testing::Test {
 protected:
  // Puts a file in the place of the folder of checkpoints when step 6 is saved.
  class Breaker : public test::QuietObserver {
   public:
    explicit Breaker(fs::path folder) : folder_(std::move(folder)) {}
    void step(const StepMetrics& metrics, int64_t, double) override { last = metrics.step; }
    void saved(int64_t step, const fs::path&) override {
      if (step != 6) return;
      fs::rename(folder_, folder_.string() + ".aside");
      std::ofstream(folder_) << "a file";
    }
    int64_t last = 0;

   private:
    fs::path folder_;
  };

  TemporaryFolder folder_;
};

TEST_F(BrokenSave, EndsTheRunWithTheReasonAndLosesNoCheckpointBefore) {
  test::make_tiny_data(folder_.path());
  set_num_threads(1);
  RunConfig config = test::tiny_config(folder_.path());
  config.train.steps = 500;
  config.train.checkpoint_every = 6;
  config.threads = 1;
  Breaker observer(folder_ / "run/checkpoints");
  auto backend = cpu::make_backend();
  expect_user_error([&] { train(config, cpu::nominal_platform(1), *backend, observer, [] { return false; }); },
                    {"step 12 could not be saved; earlier checkpoints are as they were", "checkpoints"});
  EXPECT_LT(observer.last, 18) << "it is told before the next save";
  verify_checkpoint(folder_ / "run/checkpoints.aside/step_00000006");
  std::vector<RunEvent> events = read_events(folder_ / "run");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().kind, RunEvent::Kind::kFailure);
}

}  // namespace
}  // namespace tokamak
