#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace tokamak {
namespace {

struct Piece {
  int64_t begin, end;
  int thread;
  auto operator<=>(const Piece&) const = default;
};

std::set<Piece> pieces_of(int64_t count, int64_t grain) {
  std::set<Piece> pieces;
  std::mutex mutex;
  parallel_for(count, grain, [&](int64_t begin, int64_t end, int thread) {
    std::lock_guard lock(mutex);
    pieces.insert({begin, end, thread});
  });
  return pieces;
}

// Restores the thread count, so that one test does not change another.
struct Parallel : testing::Test {
  ~Parallel() override { set_num_threads(0); }
};

TEST_F(Parallel, CoversEveryIndexOnce) {
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    EXPECT_EQ(num_threads(), threads);
    for (int64_t count : {1, 2, 5, 64, 1000})
      for (int64_t grain : {1, 3, 16, 5000}) {
        int64_t next = 0;
        std::set<int> used;
        for (Piece piece : pieces_of(count, grain)) {
          EXPECT_EQ(piece.begin, next);
          EXPECT_LT(piece.begin, piece.end);
          EXPECT_TRUE(piece.end == count || (piece.end - piece.begin) % grain == 0);
          EXPECT_TRUE(used.insert(piece.thread).second);
          EXPECT_LT(piece.thread, threads);
          next = piece.end;
        }
        EXPECT_EQ(next, count);
      }
  }
}

TEST_F(Parallel, SplitIsTheSameEveryTimeAndEven) {
  set_num_threads(3);
  auto first = pieces_of(100, 10);
  EXPECT_EQ(first, (std::set<Piece>{{0, 30, 0}, {30, 60, 1}, {60, 100, 2}}));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pieces_of(100, 10), first);
}

TEST_F(Parallel, EmptyLoopCallsNothing) {
  parallel_for(0, 1, [](int64_t, int64_t, int) { FAIL(); });
  parallel_for(-3, 1, [](int64_t, int64_t, int) { FAIL(); });
}

TEST_F(Parallel, PiecesRunOnDifferentThreads) {
  set_num_threads(2);
  // Each piece waits for the other: this ends only if they run at the same time.
  std::atomic<int> arrived{0};
  parallel_for(2, 1, [&](int64_t, int64_t, int) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST_F(Parallel, NestedLoopRunsWholeOnTheCallingThread) {
  set_num_threads(2);
  std::atomic<int> calls{0};
  parallel_for(2, 1, [&](int64_t, int64_t, int) {
    auto outer = std::this_thread::get_id();
    parallel_for(10, 1, [&](int64_t begin, int64_t end, int thread) {
      ++calls;
      EXPECT_EQ(begin, 0);
      EXPECT_EQ(end, 10);
      EXPECT_EQ(thread, 0);
      EXPECT_EQ(std::this_thread::get_id(), outer);
    });
  });
  EXPECT_EQ(calls, 2);
}

TEST_F(Parallel, LoopsOfSeveralThreadsAtOnce) {
  set_num_threads(2);
  std::vector<int64_t> sums(3, 0);
  std::vector<std::thread> callers;
  for (int64_t& sum : sums)
    callers.emplace_back([&sum] {
      for (int round = 0; round < 50; ++round) {
        int64_t part[2] = {0, 0};
        parallel_for(100, 1, [&](int64_t begin, int64_t end, int thread) {
          for (int64_t i = begin; i < end; ++i) part[thread] += i;
        });
        sum += part[0] + part[1];
      }
    });
  for (std::thread& caller : callers) caller.join();
  for (int64_t sum : sums) EXPECT_EQ(sum, 50 * 4950);
}

TEST_F(Parallel, AllCores) {
  set_num_threads(0);
  EXPECT_GE(num_threads(), 1);
}

}  // namespace
}  // namespace tokamak
