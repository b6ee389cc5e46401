// Runs whose checkpoints are written while they go on: the same files as of those that wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/parallel.h"
#include "checkpoint/event_log.h"
#include "checkpoint/verify.h"
#include "passes/step_mesh.h"
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
      EXPECT_GT(event.seconds, 0);
      EXPECT_GT(event.step_seconds, 0);
    }
}

// Ranks that are processes write the bytes of ranks that are threads, so that one run that waits is enough for both.
TEST_F(BackgroundSaves, OfSeveralRanksAreThoseThatWait) {
  const std::vector<Arguments> meshes = {{"--mesh.data=2"},
                                         {"--mesh.data=2", "--mesh.zero=1"},
                                         {"--mesh.data=2", "--mesh.zero=2"},
                                         {"--mesh.data=2", "--mesh.zero=3"},
                                         {"--mesh.data=1", "--mesh.tensor=2"},
                                         {"--mesh.data=1", "--mesh.pipe=2"}};
  for (const Arguments& mesh : meshes) {
    Arguments waiting = mesh;
    waiting.emplace_back("--train.background_saves=false");
    {
      Variable kind("TOKAMAK_RANKS", "threads");
      run("waits", waiting);
    }
    for (const char* ranks_are : {"threads", "processes"}) {
      SCOPED_TRACE(std::string(ranks_are) + " " + mesh.back());
      Variable kind("TOKAMAK_RANKS", ranks_are);
      run("goes_on", mesh);
      expect_all_same("waits", "goes_on");
      fs::remove_all(folder_ / "goes_on");
    }
    fs::remove_all(folder_ / "waits");
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
  EXPECT_LE(observer.last, 18) << "it is told at the next save, if not before";
  verify_checkpoint(folder_ / "run/checkpoints.aside/step_00000006");
  std::vector<RunEvent> events = read_events(folder_ / "run");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().kind, RunEvent::Kind::kFailure);
}

// The CPU; has no host memory for copies of a state, as a GPU whose system lets no more memory be pinned.
class ScarceBackend : public Backend {
 public:
  explicit ScarceBackend(bool is_scarce) : is_scarce_(is_scarce) {}
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return cpu_->allocate(bytes); }
  std::unique_ptr<Memory> allocate_host(int64_t bytes) override {
    return is_scarce_ ? nullptr : cpu_->allocate_host(bytes);
  }
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override { return cpu_->compile(graph, node); }
  void copy_in(void* to, const void* from, int64_t n) override { cpu_->copy_in(to, from, n); }
  void copy_out(void* to, const void* from, int64_t n) override { cpu_->copy_out(to, from, n); }
  void copy(void* to, const void* from, int64_t n) override { cpu_->copy(to, from, n); }
  int64_t used_bytes() const override { return cpu_->used_bytes(); }
  int64_t free_bytes() const override { return cpu_->free_bytes(); }

 private:
  bool is_scarce_;
  std::unique_ptr<Backend> cpu_ = cpu::make_backend();
};

class Messages : public test::QuietObserver {
 public:
  void message(const std::string& text) override { all += text + "\n"; }
  std::string all;
};

TEST(ScarceMemory, OfOneRankLetsAllWaitForTheirSaves) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  RunConfig config = test::tiny_config(folder.path());
  config.train.steps = 6;
  config.train.checkpoint_every = 2;
  config.train.keep_checkpoints = 20;
  config.mesh.data = 2;
  config.threads = 1;
  std::string told[2];
  run_ranks(2, [&](Communicator& world) {
    MeshRanks ranks(step_mesh(config.mesh), world);
    set_num_threads(1);
    ScarceBackend backend(world.rank() == 1);
    Messages observer;
    train(
        config, cpu::nominal_platform(1), backend, observer, [] { return false; }, &ranks);
    told[world.rank()] = observer.all;
  });
  EXPECT_NE(told[0].find("training waits for saves (train.background_saves): some ranks got no"), std::string::npos);
  EXPECT_NE(told[1].find(": this rank got no"), std::string::npos) << told[1];
  for (int64_t step : {2, 4, 6}) verify_checkpoint(folder / "run/checkpoints" / checkpoint_name(step));
}

}  // namespace
}  // namespace tokamak
