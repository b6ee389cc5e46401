// Steps on a thread of their own give what they give one by one.
#include "train/step_queue.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "backend/cpu/cpu_backend.h"
#include "config/config.h"
#include "train/random_batch.h"

namespace tokamak {
namespace {

RunConfig tiny() {
  RunConfig config;
  config.model = {.layers = 1, .heads = 2, .width = 16, .context = 8, .vocab = 61};
  config.train.batch = 2;
  config.compile.precision = Precision::kFp32;
  return config;
}

struct Model {
  std::unique_ptr<Backend> backend = cpu::make_backend();
  Session session{tiny(), cpu::nominal_platform(), *backend};
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
    queue.submit({random_batch(tiny(), uint64_t(i))}, {.step = i + 1, .lr = 1e-3, .data_wait_ms = double(i)});
    for (const StepMetrics& metrics : queue.take()) taken.push_back(metrics);
  }
  queue.finish();
  for (const StepMetrics& metrics : queue.take()) taken.push_back(metrics);
  EXPECT_TRUE(queue.take().empty());
  EXPECT_TRUE(queue.first_end());
  ASSERT_EQ(taken.size(), size_t(kSteps));
  for (int64_t i = 0; i < kSteps; ++i) {
    StepResult expected = alone.session.run_step(std::vector{random_batch(tiny(), uint64_t(i))}, i, 1e-3);
    const StepMetrics& metrics = taken[size_t(i)];
    EXPECT_EQ(metrics.step, i + 1);
    EXPECT_EQ(metrics.loss, expected.loss);
    EXPECT_EQ(metrics.grad_norm, expected.grad_norm);
    EXPECT_EQ(metrics.data_wait_ms, double(i));
    EXPECT_GT(metrics.ms, 0);
  }
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
