#include "base/parallel_tasks.h"

#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace tokamak;

TEST(ParallelTasks, RunEachOnce) {
  for (int64_t count : {0, 1, 2, 7, 100}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
    parallel_tasks(count, [&](int64_t i) { ++runs[size_t(i)]; });
    for (const std::atomic<int>& number : runs) EXPECT_EQ(number, 1);
  }
}

TEST(ParallelTasks, ThrowWhatTheFirstOfThemThrewAfterAllHaveRun) {
  std::atomic<int> runs = 0;
  auto task = [&](int64_t i) {
    ++runs;
    if (i == 3 || i == 5) throw std::runtime_error(std::to_string(i));
  };
  try {
    parallel_tasks(9, task);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "3");
  }
  EXPECT_EQ(runs, 9);
}

TEST(ParallelTasks, RunWithinALoop) {
  std::atomic<int> runs = 0;
  parallel_for(4, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) parallel_tasks(3, [&](int64_t) { ++runs; });
  });
  EXPECT_EQ(runs, 12);
}

TEST(ParallelTasks, RunWithinTasksAndThrowThere) {
  std::atomic<int> runs = 0, caught = 0;
  parallel_tasks(5, [&](int64_t outer) {
    parallel_tasks(4, [&](int64_t) { parallel_tasks(2, [&](int64_t) { ++runs; }); });
    try {
      parallel_tasks(3, [&](int64_t i) {
        if (i == 1) throw std::runtime_error(std::to_string(outer));
      });
    } catch (const std::runtime_error& error) {
      caught += error.what() == std::to_string(outer);
    }
  });
  EXPECT_EQ(runs, 5 * 4 * 2);
  EXPECT_EQ(caught, 5);
}

// Two inner tasks that wait for each other can only end on two threads.
TEST(ParallelTasks, ThoseThatHaveNothingToDoTakeInnerTasks) {
  int threads = num_threads();
  set_num_threads(2);
  std::mutex mutex;
  std::condition_variable both;
  std::set<std::thread::id> met;
  parallel_tasks(1, [&](int64_t) {
    parallel_tasks(2, [&](int64_t) {
      std::unique_lock lock(mutex);
      met.insert(std::this_thread::get_id());
      both.notify_all();
      both.wait_for(lock, std::chrono::seconds(30), [&] { return met.size() == 2; });
    });
  });
  set_num_threads(threads);
  EXPECT_EQ(met.size(), 2U);
}
