#include "base/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tokamak {
namespace {

TEST(SharedMemory, IsTheSameInAnotherProcess) {
  std::unique_ptr<SharedMemory> memory = SharedMemory::create(4096);
  if (!memory) GTEST_SKIP() << "this system has no shared memory";
  EXPECT_EQ(memory->data()[4095], std::byte{0});
  memory->data()[0] = std::byte{1};
  pid_t child = ::fork();
  if (child == 0) {
    std::unique_ptr<SharedMemory> same = SharedMemory::open(memory->name(), 4096);
    if (!same || same->data()[0] != std::byte{1}) ::_exit(1);
    same->data()[4095] = std::byte{2};
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory->data()[4095], std::byte{2});
}

TEST(SharedMemory, IsNotFoundWhenItIsForgottenOrTooSmall) {
  std::unique_ptr<SharedMemory> memory = SharedMemory::create(4096);
  if (!memory) GTEST_SKIP() << "this system has no shared memory";
  EXPECT_FALSE(SharedMemory::open(memory->name(), 8192));
  std::unique_ptr<SharedMemory> other = SharedMemory::open(memory->name(), 4096);
  ASSERT_TRUE(other);
  memory->forget_name();
  EXPECT_FALSE(SharedMemory::open(memory->name(), 4096));
  other->data()[7] = std::byte{3};
  EXPECT_EQ(memory->data()[7], std::byte{3});
  std::string name;
  {
    std::unique_ptr<SharedMemory> ended = SharedMemory::create(10);
    ASSERT_TRUE(ended);
    name = ended->name();
  }
  EXPECT_FALSE(SharedMemory::open(name, 10));
}

}  // namespace
}  // namespace tokamak
