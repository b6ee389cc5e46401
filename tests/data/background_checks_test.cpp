#include "data/background_checks.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

TEST(BackgroundChecks, RunOnceEachWhenAskedFor) {
  std::array<std::atomic<int>, 3> runs = {};
  std::vector<std::function<void()>> checks;
  for (auto& count : runs) checks.push_back([&count] { ++count; });
  BackgroundChecks background(checks);
  background.wait();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) background.ask(i % 2 == 0 ? 0 : 2);
    });
  for (std::thread& thread : threads) thread.join();
  background.wait();
  EXPECT_EQ(runs[0], 1);
  EXPECT_EQ(runs[1], 0);
  EXPECT_EQ(runs[2], 1);
}

TEST(BackgroundChecks, AFailureStays) {
  BackgroundChecks background({[] {}, [] { user_error("damaged"); }});
  background.ask(0);
  background.wait();
  background.ask(1);
  for (int i = 0; i < 2; ++i) expect_user_error([&] { background.wait(); }, {"damaged"});
  expect_user_error([&] { background.ask(0); }, {"damaged"});
}

TEST(BackgroundChecks, MayEndBeforeTheyAreDone) {
  for (int i = 0; i < 20; ++i) {
    BackgroundChecks background({[] {}, [] { user_error("damaged"); }});
    background.ask(1);
  }
}

}  // namespace
}  // namespace tokamak
