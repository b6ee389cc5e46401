#include "base/signals.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/error.h"

namespace tokamak {
namespace {

volatile std::sig_atomic_t before_us = 0;

// Whatever this process has inherited: nohup and shells ignore signals for what they start in the background.
class StopSignalTest : public testing::Test {
 protected:
  StopSignalTest() {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    for (int number : {SIGINT, SIGTERM, SIGHUP}) inherited_[number] = std::signal(number, SIG_DFL);
  }
  ~StopSignalTest() override {
    for (auto [number, handler] : inherited_) std::signal(number, handler);
  }

 private:
  std::map<int, void (*)(int)> inherited_;
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

TEST_F(StopSignalTest, ManySIGTERMsOnlyAskOnce) {
  StopSignal stop;
  for (int i = 0; i < 3; ++i) std::raise(SIGTERM);
  EXPECT_EQ(stop.name(), "SIGTERM");
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
