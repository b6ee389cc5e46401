#include "base/signals.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/error.h"

namespace tokamak {
namespace {

volatile std::sig_atomic_t before_us = 0;

using Handlers = std::map<int, void (*)(int)>;

Handlers handle_all(void (*handler)(int)) {
  Handlers before;
  for (int number : {SIGINT, SIGTERM, SIGHUP}) before[number] = std::signal(number, handler);
  return before;
}

void restore(const Handlers& handlers) {
  for (auto [number, handler] : handlers) std::signal(number, handler);
}

// Whatever this process has inherited: nohup and shells ignore signals for what they start in the background. So that
// this cannot be forgotten, all of these tests begin like that.
class StopSignalTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { inherited_ = handle_all(SIG_IGN); }
  static void TearDownTestSuite() { restore(inherited_); }

  StopSignalTest() : before_(handle_all(SIG_DFL)) { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  ~StopSignalTest() override { restore(before_); }

 private:
  static inline Handlers inherited_;
  Handlers before_;
};

TEST_F(StopSignalTest, SetsAFlag) {
  const std::pair<int, const char*> kSignals[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};
  for (auto [number, name] : kSignals) {
    StopSignal stop;
    EXPECT_FALSE(stop.requested());
    EXPECT_EQ(stop.name(), "");
    std::raise(number);
    EXPECT_TRUE(stop.requested());
    EXPECT_EQ(stop.name(), name);
    EXPECT_EQ(stopped_status(), 128 + number);
  }
}

TEST_F(StopSignalTest, TheFirstIsAcknowledgedAtOnce) {
  testing::internal::CaptureStderr();
  StopSignal stop("one moment\n");
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "one moment\n");
}

TEST_F(StopSignalTest, ManyAtATimeOnlyAskOnce) {
  StopSignal stop;
  for (int i = 0; i < 3; ++i) std::raise(SIGTERM), std::raise(SIGHUP);
  EXPECT_EQ(stop.name(), "SIGTERM");
}

TEST_F(StopSignalTest, OneMoreASecondLaterEndsTheProcess) {
  auto ask_after = [](int first, int second) {
    StopSignal stop;
    std::raise(first);
    if (!stop.requested()) std::_Exit(3);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    std::raise(second);
    std::_Exit(4);
  };
  EXPECT_EXIT(ask_after(SIGTERM, SIGTERM), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(ask_after(SIGHUP, SIGHUP), testing::KilledBySignal(SIGHUP), "");
  EXPECT_EXIT(ask_after(SIGINT, SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

TEST_F(StopSignalTest, ASecondInterruptEndsTheProcess) {
  auto interrupt_after = [](int first) {
    StopSignal stop;
    std::raise(first);
    if (!stop.requested()) std::_Exit(3);
    std::raise(SIGINT);
    std::_Exit(4);
  };
  EXPECT_EXIT(interrupt_after(SIGINT), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(interrupt_after(SIGTERM), testing::KilledBySignal(SIGINT), "");
}

TEST_F(StopSignalTest, RestoresWhatWasThere) {
  std::signal(SIGINT, [](int) { before_us = before_us + 1; });
  { StopSignal stop; }
  std::raise(SIGINT);
  EXPECT_EQ(before_us, 1);
}

TEST_F(StopSignalTest, IgnoredSignalsStayIgnored) {
  std::signal(SIGINT, SIG_IGN);
  StopSignal stop;
  std::raise(SIGINT);
  EXPECT_FALSE(stop.requested());
}

TEST_F(StopSignalTest, OneAtATime) {
  StopSignal stop;
  EXPECT_THROW(StopSignal(), InternalError);
}

}  // namespace
}  // namespace tokamak
