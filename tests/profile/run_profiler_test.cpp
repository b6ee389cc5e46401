#include "profile/run_profiler.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <sstream>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/file.h"
#include "base/parallel.h"
#include "passes/step_mesh.h"
#include "run/trainer.h"
#include "tests/support/quiet_observer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

class RunProfilerTest : public ::testing::Test {
 protected:
  RunProfilerTest() { test::make_tiny_data(folder_.path()); }

  RunConfig config(const std::string& out) const {
    RunConfig config = test::tiny_config(folder_.path());
    config.model.vocab = 301;
    config.train.batch = 4;
    config.train.out = (folder_ / out).string();
    config.threads = 1;
    return config;
  }

  // One rank's training with a profile from `first` on; what the profiler told of.
  void train_rank(
      const RunConfig& config, int64_t first, Backend& backend, const MeshRanks* ranks = nullptr,
      const std::function<bool()>& stop = [] { return false; }) {
    test::QuietObserver quiet;
    RunProfiler profiler(first, {.steps = {.steps = 3, .warmup = 1}, .traces = true}, backend, ranks,
                         [&](ProfileReport& report, int64_t step) {
                           report_ = std::move(report);
                           observed_ = step;
                         });
    train(config, cpu::nominal_platform(1), backend, quiet, stop, ranks, &profiler);
  }

  std::string losses(const std::string& out) const {
    std::string text, line;
    std::istringstream lines(read_file(folder_ / out / "metrics.jsonl"));
    while (std::getline(lines, line)) text += nlohmann::json::parse(line)["loss"].dump() + "\n";
    return text;
  }

  TemporaryFolder folder_;
  std::optional<ProfileReport> report_;
  int64_t observed_ = 0;
};

TEST_F(RunProfilerTest, TellsOfTheStepsAndChangesNothing) {
  RunConfig watched = config("watched"), alone = config("alone");
  watched.train.checkpoint_every = alone.train.checkpoint_every = 4;
  auto backend = cpu::make_backend();
  train_rank(watched, 5, *backend);
  ASSERT_TRUE(report_);
  EXPECT_EQ(observed_, 9) << "behind one step that warms up, and three that are compared with";
  EXPECT_EQ(report_->ranks[0].steps, 3);
  EXPECT_NEAR(report_->ranks[0].breakdown.sum(), report_->ranks[0].seconds, 1e-9);
  EXPECT_GT(report_->ranks[0].breakdown.of(WorkClass::kMatmul), 0);
  EXPECT_NE(report_->trace[0].find("wait for data"), std::string::npos);
  report_.reset();
  train_rank(alone, 1000, *backend);
  EXPECT_FALSE(report_);
  EXPECT_EQ(losses("watched"), losses("alone"));
}

TEST_F(RunProfilerTest, MayTakeTheLastStepsOfARun) {
  RunConfig last = config("last");
  last.train.steps = 10;
  auto backend = cpu::make_backend();
  train_rank(last, 1, *backend);
  ASSERT_TRUE(report_);
  EXPECT_EQ(observed_, 5);
}

// In the middle of the steps that it wants, and before the last of them.
TEST_F(RunProfilerTest, TellsNothingOfARunThatStopsBefore) {
  for (int last : {7, 10}) {
    auto backend = cpu::make_backend();
    int asked = -1;  // before the first step, too
    std::string out = "stopped" + std::to_string(last),
                step = (last < 10 ? "step_0000000" : "step_000000") + std::to_string(last);
    train_rank(config(out), 2, *backend, nullptr, [&] { return ++asked == last; });
    EXPECT_FALSE(report_) << last;
    EXPECT_TRUE(std::filesystem::exists(folder_ / out / "checkpoints" / step)) << last;
  }
}

TEST_F(RunProfilerTest, GathersWhatAllRanksDid) {
  RunConfig divided = config("mesh");
  divided.mesh.data = 2;
  set_num_threads(1);
  run_ranks(2, [&](Communicator& world) {
    MeshRanks ranks(step_mesh(divided.mesh), world);
    auto backend = cpu::make_backend(2);
    train_rank(divided, 2, *backend, &ranks);
  });
  set_num_threads(0);
  ASSERT_TRUE(report_);
  ASSERT_EQ(report_->ranks.size(), 2u);
  EXPECT_EQ(report_->trace.size(), 2u);
  for (const RankSummary& rank : report_->ranks) EXPECT_NEAR(rank.breakdown.sum(), rank.seconds, 1e-9);
}

}  // namespace
}  // namespace tokamak
