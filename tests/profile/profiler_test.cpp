#include "profile/profiler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "config/config.h"
#include "run/random_batch.h"
#include "tests/support/cpu_device.h"
#include "tests/support/resolve_first.h"

namespace tokamak {
namespace {

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 16, .vocab = 61};
  config.train.batch = 2;
  config.compile.precision = Precision::kFp32;
  return config;
}

struct Profiled {
  std::unique_ptr<Session> session;
  StepProfile profile;
};

Profiled profile(const RunConfig& config, Backend& backend, int64_t steps, bool replays = false) {
  Profiled run{std::make_unique<Session>(make_session(config, cpu::nominal_platform(), backend)), {}};
  auto next = [&] {
    std::vector<Batch> batches;
    for (int64_t i = 0; i < run.session->micro_batches(); ++i) batches.push_back(random_batch(config, uint64_t(i)));
    return batches;
  };
  StepSource source{.begin = [&] { run.session->initialise(); }, .next = next};
  run.profile = profile_steps(*run.session, backend, source, {.steps = steps, .warmup = 1}, replays);
  return run;
}

TEST(Profiler, AccountsForAllOfTheWallTime) {
  auto backend = cpu::make_backend();
  Profiled run = profile(tiny(), *backend, 3);
  const StepProfile& steps = run.profile;
  TimeBreakdown breakdown = steps.breakdown();
  EXPECT_DOUBLE_EQ(breakdown.total, steps.seconds);
  EXPECT_NEAR(breakdown.sum(), steps.seconds, 1e-9);
  for (WorkClass work : {WorkClass::kMatmul, WorkClass::kNormalisation, WorkClass::kOptimizer, WorkClass::kCopy})
    EXPECT_GT(breakdown.of(work), 0) << to_string(work);
  EXPECT_EQ(breakdown.of(WorkClass::kCommunication), 0);
  EXPECT_GT(breakdown.launch_gaps, 0);
  EXPECT_GT(breakdown.idle, 0);
  EXPECT_GT(steps.plain_seconds, 0);
  EXPECT_EQ(steps.data_waits.size(), 3u);
}

TEST(Profiler, WritesDownEachLaunchOnceAStep) {
  auto backend = cpu::make_backend();
  Profiled run = profile(tiny(), *backend, 2);
  const Plan& plan = run.session->program(0).plan();
  std::vector<int> launched(plan.launches.size());
  std::multiset<std::string> inputs;
  double before = 0;
  for (const RecordedWork& work : run.profile.works) {
    if (work.kind == Work::Kind::kInput) inputs.insert(work.name);
    if (work.kind != Work::Kind::kLaunch) continue;
    ASSERT_EQ(work.plan, &plan);
    ++launched[size_t(work.index)];
    EXPECT_GE(work.begin, before) << "kernels of one stream overlap";
    EXPECT_GE(work.end, work.begin);
    before = work.end;
  }
  EXPECT_EQ(launched, std::vector(plan.launches.size(), 2));
  EXPECT_EQ(inputs.count("tokens"), 2u);
  EXPECT_LE(before, run.profile.seconds);
}

TEST(Profiler, SeesTheProgramsOfEveryMicroBatch) {
  RunConfig config = tiny();
  config.train.total_batch = 3 * config.train.batch * config.model.context;
  auto backend = cpu::make_backend();
  Profiled run = profile(config, *backend, 2);
  std::map<std::string, int> runs;
  for (const RecordedWork& work : run.profile.works)
    if (work.kind == Work::Kind::kRun) ++runs[work.plan->graph.name()];
  EXPECT_EQ(runs, (std::map<std::string, int>{{"micro_batch", 6}, {"update", 2}}));
}

// A machine with a queue of its own, whose clock says that everything takes a second, and which records steps.
class QueueMachine : public test::CpuDevice {
 public:
  std::unique_ptr<TimeMark> mark_time(int) override { return std::make_unique<test::Tick>(ticks_++); }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    return std::make_unique<Replay>(work, replays);
  }

  int replays = 0;

 private:
  struct Replay : Recording {
    Replay(std::function<void()> work, int& count) : work(std::move(work)), count(count) {}
    void replay() override { ++count, work(); }
    std::function<void()> work;
    int& count;
  };

  int ticks_ = 0;
};

TEST(Profiler, TakesTheDevicesClockAndLaunchesOneByOne) {
  QueueMachine backend;
  Profiled run = profile(tiny(), backend, 2, /*replays=*/true);
  int launches = 0;
  for (const RecordedWork& work : run.profile.works)
    if (work.kind == Work::Kind::kLaunch) {
      EXPECT_EQ(work.seconds(), 1);  // between its two marks
      ++launches;
    }
  EXPECT_EQ(launches, 2 * int(run.session->program(0).plan().launches.size()));
  EXPECT_EQ(backend.replays, 4) << "two steps before those that are observed and two behind them";
  EXPECT_NE(run.profile.unrecorded_seconds, run.profile.plain_seconds);
}

// It begins to watch the device late, and its sensors tell when they were read.
class MeasuredMachine : public QueueMachine {
 public:
  std::unique_ptr<DeviceSensors> open_sensors() override { return std::make_unique<Sensors>(); }
  std::unique_ptr<DeviceTrace> trace_device() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return nullptr;
  }

 private:
  struct Sensors : DeviceSensors {
    SensorReading read() override { return {.clock_mhz = 1000}; }
  };
};

TEST(Profiler, ReadsSensorsWhenTheStepsHaveBegun) {
  MeasuredMachine backend;
  StepProfile steps = profile(tiny(), backend, 20).profile;
  double last = -1;
  for (const TimedReading& timed : steps.sensors) {
    EXPECT_GT(timed.at, last);
    EXPECT_GE(timed.at, 0);
    last = timed.at;
  }
}

// Its tools tell of two kernels of a second each for everything that was asked for under a tag, and of none for what
// others were asked for within.
class WatchedMachine : public QueueMachine {
 public:
  std::unique_ptr<DeviceTrace> trace_device() override { return std::make_unique<TwoKernels>(); }

 private:
  struct TwoKernels : DeviceTrace {
    void push(uint64_t tag) override {
      if (!open.empty()) std::erase(tags, open.back());
      tags.push_back(tag), open.push_back(tag);
    }
    void pop() override { open.pop_back(); }
    std::vector<DeviceActivity> take() override {
      EXPECT_TRUE(open.empty());
      std::vector<DeviceActivity> activities;
      for (uint64_t tag : tags) {
        activities.push_back({tag, double(10 * tag), double(10 * tag + 1), "first"});
        activities.push_back({tag, double(10 * tag + 5), double(10 * tag + 6), "second"});
      }
      return activities;
    }
    std::vector<uint64_t> tags, open;
  };
};

TEST(Profiler, TakesTheDevicesRecordsWhereItHasThem) {
  WatchedMachine backend;
  Profiled run = profile(tiny(), backend, 2);
  EXPECT_EQ(run.profile.clock, "the device's activity records");
  double last = 0;
  for (const RecordedWork& work : run.profile.works) {
    if (work.kind != Work::Kind::kLaunch) continue;
    EXPECT_EQ(work.seconds(), 2);
    EXPECT_EQ(work.end - work.begin, 6);
    last = std::max(last, work.end);
    std::vector<ActivitySpan> spans;
    add_spans(work, spans);
    EXPECT_EQ(spans.size(), 2u);
  }
  double free = 0;  // the host asks for a run while the one before it goes on
  for (const RecordedWork& work : run.profile.works) {
    if (work.kind != Work::Kind::kRun) continue;
    EXPECT_GE(work.end, work.begin);
    EXPECT_GE(work.begin, free);
    free = work.end;
  }
  EXPECT_GT(free, 100);
  EXPECT_EQ(run.profile.works.empty(), false);
  EXPECT_GT(last, 100);
}

// A kernel that is launched early waits for the one before it, and the device does nothing twice.
TEST(RecordedWork, CountsTheTimeOfKernelsThatOverlapOnce) {
  RecordedWork work;
  work.kernels = {{.begin = 1, .end = 5}, {.begin = 3, .end = 6}, {.begin = 4, .end = 5.5}, {.begin = 8, .end = 9}};
  EXPECT_EQ(work.seconds(), 6);
}

}  // namespace
}  // namespace tokamak
