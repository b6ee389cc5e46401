#include "base/ordered_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

namespace tokamak {
namespace {

using Pipeline = OrderedPipeline<int64_t>;

/// 0, 1, ... up to count - 1.
Pipeline::Fill numbers(int64_t count) {
  return [next = int64_t(0), count](int64_t& item) mutable {
    item = next;
    return next++ < count;
  };
}

TEST(OrderedPipeline, KeepsTheOrderForAnyNumberOfThreads) {
  for (int threads : {1, 2, 5}) {
    Pipeline pipeline(threads, numbers(1000), [](int64_t& item, int) {
      if (item % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));  // later ones overtake it
      item *= item;
    });
    int64_t item = -1;
    for (int64_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(pipeline.next(item));
      ASSERT_EQ(item, i * i);
    }
    EXPECT_FALSE(pipeline.next(item));
    EXPECT_FALSE(pipeline.next(item));
  }
}

TEST(OrderedPipeline, BoundsTheItemsUnderWay) {
  std::atomic<int64_t> begun = 0;
  int64_t taken = 0, most = 0;
  auto fill = [&](int64_t&) { return ++begun <= 500; };
  Pipeline pipeline(3, fill, [](int64_t&, int) {});
  for (int64_t item = 0; pipeline.next(item); ++taken) {
    most = std::max(most, begun - taken);
    if (taken == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a slow reader holds them up
  }
  EXPECT_EQ(taken, 500);
  EXPECT_LE(most, pipeline.capacity() + 1);
  EXPECT_GE(most, pipeline.capacity() / 2);
}

TEST(OrderedPipeline, ThrowsInTheItemsPlace) {
  for (bool in_fill : {true, false}) {
    auto fail = [&](int64_t item, bool here) {
      if (here && item == 40) throw std::runtime_error("item 40");
    };
    auto fill = [&, next = numbers(100)](int64_t& item) {
      bool more = next(item);
      fail(item, in_fill);
      return more;
    };
    Pipeline pipeline(2, fill, [&](int64_t& item, int) { fail(item, !in_fill); });
    int64_t item = 0, taken = 0;
    EXPECT_THROW(while (pipeline.next(item)) EXPECT_EQ(item, taken++), std::runtime_error);
    EXPECT_EQ(taken, 40);
  }
}

TEST(OrderedPipeline, MayEndEarlyAndEmpty) {
  Pipeline empty(2, numbers(0), [](int64_t&, int) {});
  int64_t item = 0;
  EXPECT_FALSE(empty.next(item));
  Pipeline unread(2, numbers(1'000'000'000), [](int64_t&, int) {});
  EXPECT_TRUE(unread.next(item));  // the destructor does not wait for the rest
}

}  // namespace
}  // namespace tokamak
