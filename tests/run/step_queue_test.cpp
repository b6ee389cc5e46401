// Steps on a thread of their own give what they give one by one.
#include "run/step_queue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "run/random_batch.h"
#include "tests/support/cpu_device.h"
#include "tests/support/resolve_first.h"
#include "tests/support/tiny_step.h"

namespace tokamak {
namespace {

struct Model {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Session session = make_session(test::tiny_step(), cpu::nominal_platform(), *backend);
};

TEST(StepQueue, GivesEveryStepInOrderAsOneByOne) {
  constexpr int64_t kSteps = 6;
  Model queued, alone;
  StepQueue queue(queued.session, *queued.backend);
  queue.run([&] { queued.session.initialise(); });
  alone.session.initialise();
  EXPECT_FALSE(queue.first_end());
  std::vector<StepMetrics> taken;
  for (int64_t i = 0; i < kSteps; ++i) {
    queue.submit({random_batch(test::tiny_step(), uint64_t(i))},
                 {.step = i + 1, .lr = 1e-3, .data_wait_ms = double(i)});
    for (const StepMetrics& metrics : queue.take()) taken.push_back(metrics);
  }
  queue.finish();
  for (const StepMetrics& metrics : queue.take()) taken.push_back(metrics);
  EXPECT_TRUE(queue.take().empty());
  EXPECT_TRUE(queue.first_end());
  ASSERT_EQ(taken.size(), size_t(kSteps));
  for (int64_t i = 0; i < kSteps; ++i) {
    StepResult expected = alone.session.run_step(std::vector{random_batch(test::tiny_step(), uint64_t(i))}, i, 1e-3);
    const StepMetrics& metrics = taken[size_t(i)];
    EXPECT_EQ(metrics.step, i + 1);
    EXPECT_EQ(metrics.loss, expected.loss);
    EXPECT_EQ(metrics.grad_norm, expected.grad_norm);
    EXPECT_EQ(metrics.data_wait_ms, double(i));
    EXPECT_GT(metrics.ms, 0);
  }
}

// The first has waited for its data; the second one's was asked for while the first ran.
TEST(StepQueue, AStepTakesAsLongAsItWaitedForData) {
  Model run;
  StepQueue queue(run.session, *run.backend);
  queue.run([&] { run.session.initialise(); });
  auto take_one = [&](double waited) {
    queue.submit({random_batch(test::tiny_step(), 0)}, {.step = 1, .lr = 1e-3, .data_wait_ms = waited});
    queue.finish();
    return queue.take().at(0).ms;
  };
  EXPECT_GE(take_one(1e6), 1e6);
  EXPECT_LT(take_one(1e6), 1e6) << "most of it passed before the last one's end";
}

// A device with a queue, of which each mark is a second behind the one before, and of which the host sees nothing that
// it does not wait for.
class SlowlySeenDevice : public test::CpuDevice {
 public:
  std::unique_ptr<TimeMark> mark_time(int) override { return std::make_unique<test::Tick>(ticks_++); }
  std::unique_ptr<Readback> read_later(const void* from, int64_t bytes) override {
    return std::make_unique<Unseen>(Backend::read_later(from, bytes));
  }

 private:
  struct Unseen : Readback {
    explicit Unseen(std::unique_ptr<Readback> seen) : seen(std::move(seen)) {}
    bool ready() const override { return false; }
    std::span<const std::byte> wait() override { return seen->wait(); }
    std::unique_ptr<Readback> seen;
  };

  int ticks_ = 0;
};

TEST(StepQueue, ADevicesClockSaysHowLongAStepRan) {
  SlowlySeenDevice device;
  Session session = make_session(test::tiny_step(), cpu::nominal_platform(), device);
  StepQueue queue(session, device);
  queue.run([&] { session.initialise(); });
  for (int64_t i = 0; i < 4; ++i) queue.submit({random_batch(test::tiny_step(), uint64_t(i))}, {.step = i + 1});
  queue.finish();
  std::vector<double> seconds;
  for (const StepMetrics& metrics : queue.take()) seconds.push_back(std::round(metrics.ms / 1000));
  // The first has ended before the second begins; those behind one that runs begin at its end, two marks before theirs.
  EXPECT_EQ(seconds, (std::vector<double>{1, 1, 2, 2}));
}

// What is asked for behind the step that runs is dropped.
TEST(StepQueue, EndsBeforeTheStepThatIsNotToBegin) {
  Model run;
  int64_t asked = 0;
  StepQueue queue(run.session, *run.backend, [&](const StepNews& mine) {
    ++asked;
    return StepNews{.stops = asked > 3, .failure = mine.failure};
  });
  queue.run([&] { run.session.initialise(); });
  for (int64_t i = 0; i < 6; ++i) queue.submit({random_batch(test::tiny_step(), uint64_t(i))}, {.step = i + 1});
  queue.finish();
  std::vector<StepMetrics> taken = queue.take();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken.back().step, 3);
  ASSERT_TRUE(queue.end());
  EXPECT_EQ(queue.end()->last_step, 3);
  EXPECT_TRUE(queue.end()->news.stops);
  EXPECT_EQ(asked, 4);  // all ranks stop asking at the same step
}

TEST(StepQueue, EndsWhereAStepHasNoData) {
  Model run;
  StepQueue queue(run.session, *run.backend, [](const StepNews& mine) { return mine; });
  queue.run([&] { run.session.initialise(); });
  queue.submit({random_batch(test::tiny_step(), 0)}, {.step = 1});
  EXPECT_FALSE(queue.end());
  queue.submit({}, {.step = 2}, "the disk is gone");
  queue.submit({random_batch(test::tiny_step(), 1)}, {.step = 3});
  queue.finish();
  EXPECT_EQ(queue.take().size(), 1u);
  ASSERT_TRUE(queue.end());
  EXPECT_EQ(queue.end()->last_step, 1);
  EXPECT_EQ(queue.end()->news.failure, "the disk is gone");
}

TEST(StepQueue, HandsOnWhatAStepThrows) {
  Model run;
  StepQueue queue(run.session, *run.backend);
  queue.submit({}, {.step = 1});  // a step takes a batch
  EXPECT_ANY_THROW(queue.finish());
  EXPECT_ANY_THROW(queue.take());
}

}  // namespace
}  // namespace tokamak
