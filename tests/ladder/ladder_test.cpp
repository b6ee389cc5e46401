#include "ladder/ladder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "base/parallel.h"
#include "compile/step_compiler.h"
#include "config/config.h"
#include "ladder/ladder_report.h"
#include "model/model.h"
#include "tests/support/resolve_first.h"

namespace tokamak {
namespace {

// The CPU with as much memory as a test says.
class SmallMachine : public Backend {
 public:
  explicit SmallMachine(int64_t free_bytes) : free_(free_bytes), cpu_(cpu::make_backend()) {}
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return cpu_->allocate(bytes); }
  std::unique_ptr<Kernel> compile(const Graph& graph, const Node& node) override { return cpu_->compile(graph, node); }
  void copy_in(void* to, const void* from, int64_t bytes) override { cpu_->copy_in(to, from, bytes); }
  void copy_out(void* to, const void* from, int64_t bytes) override { cpu_->copy_out(to, from, bytes); }
  void copy(void* to, const void* from, int64_t bytes) override { cpu_->copy(to, from, bytes); }
  double time(const std::function<void()>& work) override {
    ++timed;
    work();
    return 0.25;
  }
  int64_t used_bytes() const override { return cpu_->used_bytes(); }
  int64_t free_bytes() const override { return free_; }

  int timed = 0;

 private:
  int64_t free_;
  std::unique_ptr<Backend> cpu_;
};

// What others of the process gave back meanwhile is more than what a rung takes.
class ShrinkingMachine : public SmallMachine {
 public:
  using SmallMachine::SmallMachine;
  int64_t used_bytes() const override { return used_ -= int64_t(1) << 30; }

 private:
  mutable int64_t used_ = int64_t(1) << 40;
};

void all_off(RunConfig& c, int64_t) {
  c.compile.precision = Precision::kFp32;
  c.compile.disable_passes = {"fuse", "flash_attention", "pad_vocab", "fused_optimizer"};
}
void nothing(RunConfig&, int64_t) {}
void flash(RunConfig& c, int64_t) { std::erase(c.compile.disable_passes, "flash_attention"); }
void accumulate(RunConfig& c, int64_t) { c.train.total_batch = 4 * c.train.batch * c.model.context; }

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 64, .vocab = 301};
  config.train.batch = 2;
  return config;
}

std::vector<RungResult> run(std::span<const Rung> rungs, int64_t free_bytes, const LadderOptions& options,
                            const RunConfig& config = tiny()) {
  SmallMachine backend(free_bytes);
  return run_ladder(config, cpu::nominal_platform(), backend, rungs, options, {});
}

// On one thread: such small steps would mostly wait for threads that other programs keep from running.
class Ladder : public testing::Test {
 protected:
  void SetUp() override { set_num_threads(1); }
  void TearDown() override { set_num_threads(0); }
};

constexpr LadderOptions kByDevice = {.steps = 3, .warmup = 1, .device_clock = true};
constexpr int64_t kPlenty = int64_t(1) << 40;

TEST_F(Ladder, TimesStepsByTheDevicesClock) {
  constexpr Rung kRungs[] = {{"off", all_off}};
  RungResult r = run(kRungs, kPlenty, kByDevice)[0];
  EXPECT_DOUBLE_EQ(r.ms, 250);
  EXPECT_DOUBLE_EQ(r.tokens_per_second, 2 * 64 / 0.25);
  FlopsPerToken flops = flops_per_token(tiny().model);
  double peak = cpu::nominal_platform().target.f32_flops;
  EXPECT_DOUBLE_EQ(r.mfu, r.tokens_per_second * flops.full / peak);
  EXPECT_DOUBLE_EQ(r.mfu_causal, r.tokens_per_second * flops.causal / peak);
  EXPECT_LT(r.mfu_causal, r.mfu);
  EXPECT_GT(r.predicted_ms, 0);
  EXPECT_GT(r.first_step_ms, 0);
  EXPECT_EQ(r.precision, Precision::kFp32);
}

// Takes as long as a list says, run by run.
class PacedMachine : public SmallMachine {
 public:
  explicit PacedMachine(std::vector<double> ms) : SmallMachine(kPlenty), ms_(std::move(ms)) {}
  double time(const std::function<void()>& work) override {
    SmallMachine::time(work);
    return 1e-3 * ms_.at(size_t(timed - 1));
  }

 private:
  std::vector<double> ms_;
};

std::vector<int> rounded(const std::vector<double>& ms) {
  std::vector<int> whole;
  for (double value : ms) whole.push_back(int(std::lround(value)));
  return whole;
}

std::vector<RungResult> climb_two(const std::vector<double>& ms) {
  constexpr Rung kRungs[] = {{"off", all_off}, {"flash", flash}};
  PacedMachine backend(ms);
  LadderOptions options = kByDevice;
  options.steps = 1;
  auto results = run_ladder(tiny(), cpu::nominal_platform(), backend, kRungs, options, {});
  EXPECT_EQ(size_t(backend.timed), ms.size());
  return results;
}

TEST_F(Ladder, WhatSeemsSlowerIsMeasuredInTurnsWithTheRungBefore) {
  RungResult r = climb_two({100, 130, /*before*/ 120, 118, /*before*/ 124, 90})[1];
  EXPECT_EQ(rounded(r.repeats), (std::vector<int>{130, 118, 90}));
  EXPECT_EQ(rounded(r.repeats_before), (std::vector<int>{100, 120, 124}));
  EXPECT_DOUBLE_EQ(r.ms, 118) << "the median";
  EXPECT_DOUBLE_EQ(r.speedup_step, 120.0 / 118);
  EXPECT_DOUBLE_EQ(r.tokens_per_second, 2 * 64 / 0.118);
  EXPECT_EQ(rounded({r.least_ms, r.most_ms}), (std::vector<int>{90, 130}));
  EXPECT_TRUE(r.kept) << "the machine was busy";
  r = climb_two({100, 130, 101, 131, 99, 129})[1];
  EXPECT_FALSE(r.kept);
  EXPECT_DOUBLE_EQ(r.speedup_step, 100.0 / 130);
  r = climb_two({100, 102})[1];
  EXPECT_TRUE(r.repeats.empty()) << "within the noise";
}

TEST_F(Ladder, TellsHowFarStepsLieApart) {
  constexpr Rung kRungs[] = {{"off", all_off}};
  PacedMachine backend({10, 14, 11});
  RungResult r = run_ladder(tiny(), cpu::nominal_platform(), backend, kRungs, kByDevice, {})[0];
  EXPECT_EQ(rounded({r.least_ms, r.ms, r.most_ms}), (std::vector<int>{10, 11, 14}));
  EXPECT_DOUBLE_EQ(r.spread(), 4.0 / 11);
}

TEST_F(Ladder, StepsOfAQueueHaveARangeAroundTheirMean) {
  constexpr Rung kRungs[] = {{"off", all_off}};
  for (bool async : {false, true}) {
    RunConfig config = tiny();
    config.compile.async = async;
    SmallMachine backend(kPlenty);
    RungResult r = run_ladder(config, cpu::nominal_platform(), backend, kRungs, {.steps = 4}, {})[0];
    EXPECT_GT(r.least_ms, 0);
    EXPECT_LE(r.least_ms, r.ms);
    EXPECT_LE(r.least_ms, r.most_ms);
    if (!async) EXPECT_LE(r.ms, r.most_ms);
  }
}

TEST_F(Ladder, UsedMemoryIsNeverNegative) {
  constexpr Rung kRungs[] = {{"off", all_off}, {"flash", flash}};
  ShrinkingMachine backend(kPlenty);
  for (const RungResult& r : run_ladder(tiny(), cpu::nominal_platform(), backend, kRungs, kByDevice, {})) {
    EXPECT_TRUE(r.ran()) << r.failure;
    EXPECT_EQ(r.used_bytes, 0) << r.name;
  }
}

// Also where the machine was busy while its rates were measured: one peak, the one that is printed, for all rungs.
TEST_F(Ladder, TheShareIsOfThePeakThatIsTold) {
  constexpr Rung kRungs[] = {{"off", all_off}};
  Platform slow = cpu::nominal_platform();
  slow.target.f32_flops = 1;
  SmallMachine backend(kPlenty);
  RungResult r = run_ladder(tiny(), slow, backend, kRungs, kByDevice, {})[0];
  EXPECT_DOUBLE_EQ(r.peak.flops, peak_of(slow.target, Precision::kFp32).flops);
  EXPECT_DOUBLE_EQ(r.mfu, r.tokens_per_second * flops_per_token(tiny().model).full / r.peak.flops);
  EXPECT_GT(r.mfu, 1);
}

TEST_F(Ladder, TheTopIsTimedOnceMoreUnderLoad) {
  constexpr Rung kRungs[] = {{"off", all_off}, {"flash", flash}, {"x4", accumulate, true}};
  LadderOptions options = kByDevice;
  options.load_seconds = 0.01;
  SmallMachine backend(kPlenty);
  auto results = run_ladder(tiny(), cpu::nominal_platform(), backend, kRungs, options, {});
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(backend.timed, 4 * options.steps);
  const RungResult& loaded = results[3];
  EXPECT_EQ(loaded.name, "the top, after 0.01 s of it");
  EXPECT_EQ(loaded.planned_bytes, results[1].planned_bytes) << "of what was kept";
  EXPECT_FALSE(loaded.kept);
  EXPECT_EQ(rung_note(loaded), "aside");
}

// Uses as many joules for each copy to it as a step has tokens.
class MeteredMachine : public SmallMachine {
 public:
  MeteredMachine() : SmallMachine(kPlenty) {}
  void copy_in(void* to, const void* from, int64_t bytes) override {
    ++copies_;
    SmallMachine::copy_in(to, from, bytes);
  }
  std::unique_ptr<DeviceSensors> open_sensors() override { return std::make_unique<Meter>(copies_); }

 private:
  struct Meter : DeviceSensors {
    explicit Meter(const int64_t& copies) : copies(copies) {}
    SensorReading read() override { return {.joules = 2.0 * 64 * double(copies)}; }
    const int64_t& copies;
  };
  int64_t copies_ = 0;
};

TEST_F(Ladder, UnderLoadJoulesAreThoseOfItsOwnSteps) {
  constexpr Rung kRungs[] = {{"off", all_off}};
  LadderOptions options = kByDevice;
  options.load_seconds = 0.02;
  MeteredMachine backend;
  auto results = run_ladder(tiny(), cpu::nominal_platform(), backend, kRungs, options, {});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].joules_per_token, 0);
  EXPECT_GE(results[1].joules_per_token, 1);
  EXPECT_EQ(results[1].joules_per_token, std::round(results[1].joules_per_token)) << "copies of a step";
}

TEST_F(Ladder, NothingIsLoadedWhereNothingFits) {
  constexpr Rung kRungs[] = {{"off", all_off}};
  LadderOptions options = kByDevice;
  options.load_seconds = 0.01;
  EXPECT_EQ(run(kRungs, 1000, options).size(), 1u);
}

TEST_F(Ladder, OnTheCpuTheHostsClockIsRead) {
  constexpr Rung kRungs[] = {{"off", all_off}};
  SmallMachine backend(kPlenty);
  auto results = run_ladder(tiny(), cpu::nominal_platform(), backend, kRungs, {.steps = 2}, {});
  EXPECT_EQ(backend.timed, 0);
  EXPECT_GT(results[0].ms, 0);
}

TEST_F(Ladder, OptionalRungsAreNotKept) {
  constexpr Rung kRungs[] = {{"off", all_off}, {"flash, aside", flash, true}, {"as before", nothing}};
  auto results = run(kRungs, kPlenty, kByDevice);
  EXPECT_FALSE(results[1].kept);
  EXPECT_TRUE(results[1].changed);
  EXPECT_NE(results[1].planned_bytes, results[0].planned_bytes);
  EXPECT_FALSE(results[2].changed) << "the rung after it builds on the first";
  EXPECT_EQ(results[2].planned_bytes, results[0].planned_bytes);
  EXPECT_TRUE(results[2].kept);
}

// The plan does not show it: only the gradient of attention is another.
TEST_F(Ladder, SumsInAnyOrderAreMeasured) {
  constexpr Rung kRungs[] = {{"flash", flash},
                             {"any order", [](RunConfig& c, int64_t) { c.compile.deterministic = false; }, true}};
  EXPECT_TRUE(run(kRungs, kPlenty, kByDevice)[1].changed);
}

TEST_F(Ladder, AccumulationIsShownForAsManyTokens) {
  constexpr Rung kRungs[] = {{"off", all_off}, {"accumulation x4", accumulate, true}};
  auto results = run(kRungs, kPlenty, kByDevice);
  EXPECT_EQ(results[1].micro_batches, 4);
  EXPECT_DOUBLE_EQ(results[1].ms, 250.0 / 4) << "four micro-batches took as long as one";
  EXPECT_DOUBLE_EQ(results[1].tokens_per_second, 4 * results[0].tokens_per_second);
  EXPECT_GT(results[1].predicted_ms, results[0].predicted_ms / 2);
  EXPECT_LT(results[1].predicted_ms, results[0].predicted_ms * 2);
}

// Not for speed: that each of them compiles, runs and is reported.
TEST_F(Ladder, EveryRungOfTheGpuRuns) {
  auto results = run(gpu_rungs(), kPlenty, kByDevice);
  ASSERT_EQ(results.size(), gpu_rungs().size());
  for (size_t i = 0; i < results.size(); ++i) {
    const RungResult& r = results[i];
    EXPECT_TRUE(r.ran()) << r.name << ": " << r.failure;
    EXPECT_EQ(r.name, gpu_rungs()[i].name);
    EXPECT_EQ(r.optional, gpu_rungs()[i].optional) << r.name;
    EXPECT_GT(r.predicted_ms, 0) << r.name;
  }
}

TEST_F(Ladder, ARungThatDoesNotFitIsNamedAndTheNextOnesGoOn) {
  RunConfig config = tiny();
  config.train.batch *= 8;  // so that scratch memory of all threads is little beside attention's matrices
  const RunConfig asked = config;
  all_off(config, 0);
  int64_t naive = compile_step(config, cpu::nominal_platform()).total_bytes();
  flash(config, 0);
  CompiledStep flash_step = compile_step(config, cpu::nominal_platform());
  int64_t with_flash = flash_step.total_bytes() - flash_step.scratch_bytes();
  ASSERT_LT(with_flash, naive);
  constexpr Rung kRungs[] = {{"off", all_off}, {"+ flash attention", flash}};
  auto results = run(kRungs, naive - 1, kByDevice, asked);
  EXPECT_FALSE(results[0].ran());
  EXPECT_FALSE(results[0].kept);
  EXPECT_EQ(results[0].planned_bytes, naive);
  EXPECT_NE(results[0].failure.find("does not fit (needs "), std::string::npos) << results[0].failure;
  EXPECT_TRUE(results[1].ran()) << results[1].failure;
  EXPECT_GE(results[1].planned_bytes, with_flash);
  EXPECT_LT(results[1].planned_bytes, with_flash + with_flash / 2)
      << "it builds on the rung that did not fit; the scratch memory of so many threads as there are is besides";
  EXPECT_DOUBLE_EQ(results[1].speedup_total, 1);
}

}  // namespace
}  // namespace tokamak
