#include "base/parallel_tasks.h"

#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
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
