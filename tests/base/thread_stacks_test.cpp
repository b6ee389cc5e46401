#include "base/thread_stacks.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace tokamak {
namespace {

int times(const std::string& text, const std::string& piece) {
  int count = 0;
  for (size_t at = text.find(piece); at != text.npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

// Two threads beside this one, one of which sleeps in the system.
class ThreadStacks : public testing::Test {
 protected:
  ~ThreadStacks() override { over_ = true; }

  std::atomic<bool> over_ = false;
  std::atomic<int> ready_ = 0;
  std::jthread busy_{[this] {
    ::prctl(PR_SET_NAME, "is busy");
    for (++ready_; !over_;) {
    }
  }};
  std::jthread sleeping_{[this] {
    ::prctl(PR_SET_NAME, "sleeps");
    for (++ready_; !over_;) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }};
};

TEST_F(ThreadStacks, AllAreToldAtASignalAndTheProcessGoesOn) {
  tell_stacks_on_request();
  while (ready_ < 2) std::this_thread::yield();
  testing::internal::CaptureStderr();
  ::kill(::getpid(), SIGUSR1);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(times(told, "stacks of process " + std::to_string(::getpid())), 1) << told;
  EXPECT_EQ(times(told, "(is busy):\n"), 1) << told;
  EXPECT_EQ(times(told, "(sleeps):\n"), 1) << told;
  EXPECT_GE(times(told, "base_test"), 3) << told;
}

TEST_F(ThreadStacks, AThreadTellsThoseOfTheOthers) {
  tell_stacks_on_request();
  while (ready_ < 2) std::this_thread::yield();
  testing::internal::CaptureStderr();
  tell_stacks();
  std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(times(told, "(is busy):\n"), 1) << told;
  EXPECT_EQ(times(told, "(sleeps):\n"), 1) << told;
}

}  // namespace
}  // namespace tokamak
