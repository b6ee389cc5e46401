// A run with FP8 whose gradients drift from those in BF16: it notices, goes on without what causes it, and resumes so.
#include <gtest/gtest.h>

#include "checkpoint/event_log.h"
#include "config/json.h"
#include "tests/e2e/finished_run.h"
#include "tests/e2e/small_run.h"
#include "tests/support/expect_error.h"

#include <nlohmann/json.hpp>

#include <fstream>

namespace tokamak {
namespace {

using test::expect_same;
using test::read_run;

constexpr int64_t kPlanted = 6;

// Before a step, makes a hidden unit that is never on with a weight that leaves no room for the others in eight bits.
class Planter : public StepWatcher {
 public:
  void step_begins(int64_t step, const WatchedRun& run) override {
    if (step != kPlanted) return;
    run.queue.run([&] {
      set_element(run.session.store(), "h.0.mlp.c_fc.weight", 1e5F);
      set_element(run.session.store(), "h.0.mlp.c_fc.bias", -1e7F);
    });
  }
  void data_read() override {}
  void step_submitted() override {}

 private:
  static void set_element(TensorStore& store, const std::string& name, float value) {
    constexpr size_t kUnit = 7;
    std::vector<float> values(size_t(num_elements(store.type(name).shape)));
    store.read_whole(name, values.data());
    values[kUnit] = value;
    store.write_share(name, values.data());
  }
};

class ShadowTest : public test::SmallRun {
 protected:
  ShadowTest() : SmallRun(1) {}

  RunConfig config(const std::string& out) const {
    RunConfig config = SmallRun::config(out);
    config.train.batch = 4;
    config.train.shadow_every = 5;
    config.compile.precision = Precision::kFp8;
    return config;
  }

  TrainSummary run(const RunConfig& config, int64_t stop_after = 0, StepWatcher* watcher = nullptr) {
    Platform platform = cpu::nominal_platform(1);  // which has no kernels in eight bits: references are run
    platform.target.bf16_flops = 1e9;
    platform.target.fp8_flops = 2e9;
    platform.target.memory_bandwidth = 1e12;
    platform.target.launch_seconds = 0;
    return SmallRun::run(config, stop_after, platform, watcher);
  }

  /// By step, what metrics.jsonl tells of shadows.
  std::map<int64_t, nlohmann::json> shadows_of(const std::string& out) const {
    std::map<int64_t, nlohmann::json> shadows;
    std::ifstream lines(folder_ / out / "metrics.jsonl");
    for (std::string line; std::getline(lines, line);)
      if (auto json = nlohmann::json::parse(line); json.contains("shadow")) shadows[json["step"]] = json["shadow"];
    return shadows;
  }

  Planter planter_;
};

TEST_F(ShadowTest, IsToldEverySoManySteps) {
  EXPECT_EQ(run(config("run")).steps, kSteps);
  auto shadows = shadows_of("run");
  ASSERT_EQ(shadows.size(), 4u);
  for (int64_t step : {5, 10, 15, 20}) {
    EXPECT_GT(shadows.at(step)["least"], 0.95) << step;
    EXPECT_GT(shadows.at(step)["cosine"], shadows.at(step)["least"]) << step;
    EXPECT_EQ(shadows.at(step)["saturated"], 0) << step;
    EXPECT_EQ(shadows.at(step)["cosines"].size(), 9u);
  }
  EXPECT_EQ(listener_.messages.find("shadow_bound"), std::string::npos) << listener_.messages;
}

TEST_F(ShadowTest, WhatDriftsGoesOnInBf16) {
  EXPECT_EQ(run(config("run"), 0, &planter_).steps, kSteps);
  EXPECT_NE(listener_.messages.find("after step 10 the cosine of the gradients of ln_2 with fp8"), std::string::npos)
      << listener_.messages;
  EXPECT_NE(listener_.messages.find("the products of mlp.c_fc have bf16"), std::string::npos) << listener_.messages;
  EXPECT_EQ(listener_.messages.find("train.ramp"), std::string::npos) << listener_.messages;
  auto shadows = shadows_of("run");
  ASSERT_EQ(shadows.size(), 4u);
  EXPECT_LT(shadows.at(10)["least"], 0.9);
  EXPECT_EQ(shadows.at(10)["least_kind"], "ln_2") << "behind the products that drift";
  for (int64_t step : {15, 20}) EXPECT_GT(shadows.at(step)["least"], 0.95) << step;
  int64_t told = 0;
  for (const RunEvent& event : read_events(folder_ / "run"))
    if (event.kind == RunEvent::Kind::kFallback) {
      ++told;
      EXPECT_EQ(event.step, 10);
      EXPECT_EQ(event.cause, "mlp.c_fc");
    }
  EXPECT_EQ(told, 1);
  EXPECT_EQ(run_config_from_json(read_file(folder_ / "run/config.json"), "").compile.fp8_except,
            std::vector<std::string>{"mlp.c_fc"});
}

// Before the drift is noticed, right behind it, and later, where nobody asks for a shadow any more.
TEST_F(ShadowTest, ResumesWithTheSameBits) {
  run(config("straight"), 0, &planter_);
  for (int64_t stop_after : {8, 10, 13}) {
    RunConfig broken = config("broken" + std::to_string(stop_after));
    EXPECT_TRUE(run(broken, stop_after, &planter_).stopped);
    if (stop_after > 10) broken.train.shadow_every = 0;
    EXPECT_EQ(run(broken, 0).steps, kSteps);
    expect_same(read_run(folder_ / "straight", kSteps), read_run(broken.train.out, kSteps));
  }
}

// The bits of the run are those of one that has bf16 there from that step on.
TEST_F(ShadowTest, GoesOnAsARunThatIsToldTo) {
  run(config("noticed"), 0, &planter_);
  RunConfig told = config("told");
  told.train.shadow_every = 0;
  told.train.steps = 10;
  told.optimizer.schedule_steps = kSteps;
  run(told, 0, &planter_);
  told.train.steps = kSteps;
  told.compile.fp8_except = {"mlp.c_fc"};
  run(told);
  expect_same(read_run(folder_ / "noticed", kSteps), read_run(folder_ / "told", kSteps));
}

TEST_F(ShadowTest, IsOfEveryMicroBatchSizeAndCheckpointEverySteps) {
  RunConfig many = config("many");
  many.train.total_batch = 3 * 4 * 16;
  many.train.checkpoint_every = 3;
  many.train.eval_every = 10;
  many.train.eval_batches = 2;
  EXPECT_EQ(run(many, 0, &planter_).steps, kSteps);
  EXPECT_NE(listener_.messages.find("the products of mlp.c_fc have bf16"), std::string::npos) << listener_.messages;
  EXPECT_EQ(shadows_of("many").size(), 4u);
}

TEST_F(ShadowTest, RefusesKindsThatTheModelHasNot) {
  RunConfig wrong = config("wrong");
  wrong.compile.fp8_except = {"mlp.fc"};
  expect_user_error([&] { run(wrong); }, {"compile.fp8_except", "got 'mlp.fc'", "mlp.c_fc"});
}

}  // namespace
}  // namespace tokamak
