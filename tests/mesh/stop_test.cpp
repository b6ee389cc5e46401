// A request to stop at any moment: also in the middle of an evaluation, which the next start makes up for.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "backend/cpu/cpu_backend.h"
#include "backend/ranks/inprocess.h"
#include "base/parallel.h"
#include "passes/step_mesh.h"
#include "run/trainer.h"
#include "tests/e2e/finished_run.h"
#include "tests/support/quiet_observer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

using test::expect_same;
using test::read_run;

class Stop : public testing::Test {
 protected:
  void SetUp() override {
    test::make_tiny_data(folder_.path());
    set_num_threads(1);
  }

  RunConfig config(const std::string& out) const {
    RunConfig config = test::tiny_config(folder_.path());
    config.threads = 1;
    config.train.out = (folder_ / out).string();
    config.train.steps = 4;
    config.train.eval_every = 2;
    config.train.eval_batches = 3;
    config.train.sample_every = 2;
    config.train.sample_tokens = 4;
    config.train.keep_best = true;
    return config;
  }

  /// Asked to stop from the `calls`-th time on that it looks; on a mesh one rank alone is asked.
  static TrainSummary train(const RunConfig& config, int64_t calls) {
    auto one = [&](const MeshRanks* ranks) {
      auto backend = cpu::make_backend();
      set_num_threads(1);
      test::QuietObserver observer;
      std::atomic<int64_t> looked = 0;
      bool is_asked = !ranks || ranks->rank() == ranks->world().size() - 1;
      auto stop = [&] { return is_asked && ++looked >= calls; };
      return tokamak::train(config, cpu::nominal_platform(1), *backend, observer, stop, ranks);
    };
    Mesh mesh = step_mesh(config.mesh);
    if (mesh.num_ranks() == 1) return one(nullptr);
    TrainSummary first;
    run_ranks(int(mesh.num_ranks()), [&](Communicator& world) {
      MeshRanks ranks(mesh, world);
      TrainSummary mine = one(&ranks);
      if (ranks.rank() == 0) first = mine;
    });
    return first;
  }
  static TrainSummary train(const RunConfig& config) { return train(config, int64_t(1) << 40); }

  static std::map<int64_t, double> val_losses(const RunConfig& config) {
    std::map<int64_t, double> losses;
    std::ifstream lines(std::filesystem::path(config.train.out) / "metrics.jsonl");
    for (std::string line; std::getline(lines, line);)
      if (auto json = nlohmann::json::parse(line); json.contains("val_loss")) losses[json["step"]] = json["val_loss"];
    return losses;
  }

  void expect_goes_on(const std::function<RunConfig(const std::string& out)>& make) {
    RunConfig straight = make("straight");
    train(straight);
    ASSERT_EQ(val_losses(straight).size(), 2u);
    int left_out = 0;  // evaluations
    for (int64_t calls = 1; calls <= 12; ++calls) {
      RunConfig broken = make("broken" + std::to_string(calls));
      TrainSummary summary = train(broken, calls);
      if (summary.stopped && summary.steps > 0) {
        EXPECT_TRUE(std::filesystem::exists(checkpoints_folder(broken.train.out) / checkpoint_name(summary.steps)));
        left_out += int(summary.steps / 2) - int(val_losses(broken).size());
      }
      train(broken);
      EXPECT_EQ(val_losses(broken), val_losses(straight)) << calls;
      expect_same(read_run(straight.train.out, 4), read_run(broken.train.out, 4));
    }
    EXPECT_GT(left_out, 2);
  }

  TemporaryFolder folder_;
};

TEST_F(Stop, AtAnyMoment) {
  expect_goes_on([&](const std::string& out) { return config(out); });
}

TEST_F(Stop, OfTwoRanks) {
  expect_goes_on([&](const std::string& out) {
    RunConfig run = config(out);
    run.mesh.data = 2;
    return run;
  });
}

}  // namespace
}  // namespace tokamak
