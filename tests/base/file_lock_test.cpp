#include "base/file_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "base/start_threads.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

class FileLockTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "lock";
};

TEST_F(FileLockTest, OneAtATime) {
  {
    FileLock first(file_);
    EXPECT_TRUE(first.is_held());
    FileLock second(file_);
    EXPECT_FALSE(second.is_held());
    EXPECT_EQ(second.holder().find("process " + std::to_string(::getpid()) + " on "), 0u) << second.holder();
  }
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_TRUE(FileLock(file_).is_held());
}

TEST_F(FileLockTest, ARefusedOneChangesNothing) {
  FileLock first(file_);
  { FileLock second(file_); }
  EXPECT_FALSE(FileLock(file_).is_held());
}

TEST_F(FileLockTest, TellsItsHolderToThoseWhoOnlyAsk) {
  EXPECT_EQ(lock_holder(file_), "");
  EXPECT_FALSE(std::filesystem::exists(file_));
  FileLock lock(file_);
  EXPECT_EQ(lock_holder(file_).find("process " + std::to_string(::getpid()) + " on "), 0u) << lock_holder(file_);
  std::filesystem::copy_file(file_, folder_ / "left");  // of a machine that went down
  EXPECT_EQ(lock_holder(folder_ / "left"), "");
}

TEST_F(FileLockTest, EndsWithItsProcess) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  if (child == 0) {
    FileLock lock(file_);
    char held = lock.is_held();
    if (::write(ready[1], &held, 1) != 1) ::_exit(1);
    ::pause();
  }
  char held = 0;
  ASSERT_EQ(::read(ready[0], &held, 1), 1);
  EXPECT_TRUE(held);
  FileLock refused(file_);
  EXPECT_NE(refused.holder().find(std::to_string(child)), std::string::npos) << refused.holder();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(FileLock(file_).is_held());
}

// A holder removes the file when it is done: who has opened it before then must not hold what is gone.
TEST_F(FileLockTest, ThereIsOneHolderThoughTheFileGoesAndComes) {
  std::atomic<int> holders = 0, most = 0, taken = 0;
  std::vector<std::thread> threads = start_threads(4, [&](int) {
    while (taken < 1000 && most < 2) {
      FileLock lock(file_);
      if (!lock.is_held()) continue;
      ++taken;
      most = std::max(most.load(), ++holders);
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // while others try
      --holders;
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace tokamak
