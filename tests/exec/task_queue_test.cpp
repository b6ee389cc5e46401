// The thread that runs a training run's steps.
#include "exec/task_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace tokamak {
namespace {

void fail() { throw std::runtime_error("failed"); }

TEST(TaskQueue, RunsTasksInOrderOnOneOtherThread) {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  TaskQueue queue;
  for (int i = 0; i < 20; ++i)
    queue.submit([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    });
  queue.wait();
  ASSERT_EQ(order.size(), 20u);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(order[size_t(i)], i);
    EXPECT_EQ(threads[size_t(i)], threads[0]);
  }
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(TaskQueue, RunReturnsWhenTheTaskHasRun) {
  TaskQueue queue;
  int value = 0;
  queue.submit([&] { value = 1; });
  queue.run([&] { value *= 2; });
  EXPECT_EQ(value, 2);
}

TEST(TaskQueue, EndsWhenAllTasksHaveRun) {
  int ran = 0;
  {
    TaskQueue queue(8);
    for (int i = 0; i < 8; ++i) queue.submit([&] { ++ran; });
  }
  EXPECT_EQ(ran, 8);
}

TEST(TaskQueue, HoldsNoMoreTasksThanItsDepth) {
  constexpr int kDepth = 3;
  std::atomic<int> submitted = 0;
  int seen = 0;
  TaskQueue queue(kDepth);
  queue.submit([&] {
    while (submitted < kDepth) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which there could be more
    seen = submitted;
  });
  for (int i = 0; i < 10; ++i) {
    queue.submit([] {});
    ++submitted;
  }
  queue.wait();
  EXPECT_EQ(seen, kDepth);
}

TEST(TaskQueue, HandsOnWhatATaskThrows) {
  TaskQueue queue;
  EXPECT_THROW(queue.run(fail), std::runtime_error);
  EXPECT_THROW(queue.check(), std::runtime_error);
  EXPECT_THROW(queue.wait(), std::runtime_error);
  EXPECT_THROW(queue.submit([] {}), std::runtime_error);
}

TEST(TaskQueue, DropsTasksAfterOneThatThrew) {
  bool ran = false;
  TaskQueue queue;
  std::atomic<bool> go = false;
  queue.submit([&] {
    while (!go) std::this_thread::yield();
    fail();
  });
  queue.submit([&] { ran = true; });
  go = true;
  EXPECT_THROW(queue.wait(), std::runtime_error);
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace tokamak
