#include "base/start_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <iostream>

#include "base/ordered_pipeline.h"
#include "tests/support/address_space.h"

namespace tokamak {
namespace {

using test::has_sanitizer, test::kSanitized, test::leave_address_space;

TEST(StartThreads, AllOfThem) {
  std::atomic<int> sum = 0;
  for (std::thread& thread : start_threads(5, [&](int i) { sum += i; })) thread.join();
  EXPECT_EQ(sum, 0 + 1 + 2 + 3 + 4);
}

TEST(StartThreads, APipelineWorksWithThoseThatItGets) {
  if (has_sanitizer()) GTEST_SKIP() << kSanitized;
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto work = [] {
    leave_address_space(rlim_t(200) << 20);
    int next = 0, sum = 0;
    OrderedPipeline<int> pipeline(
        1000, [&](int& item) { return (item = next++) < 100; }, [](int&, int) {});
    for (int item = 0; pipeline.next(item);) sum += item;
    std::_Exit(sum == 4950 ? 0 : 1);
  };
  EXPECT_EXIT(work(), testing::ExitedWithCode(0), "");
}

TEST(StartThreads, NoneIsAMessage) {
  if (has_sanitizer()) GTEST_SKIP() << kSanitized;
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto work = [] {
    leave_address_space(1 << 20);
    try {
      OrderedPipeline<int> pipeline(
          4, [](int&) { return false; }, [](int&, int) {});
    } catch (const UserError& error) {
      std::cerr << error.what();
      std::_Exit(0);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(work(), testing::ExitedWithCode(0), "cannot start a thread");
}

}  // namespace
}  // namespace tokamak
