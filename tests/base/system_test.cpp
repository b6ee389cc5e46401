#include "base/system.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <time.h>

namespace tokamak {
namespace {

TEST(System, KnowsWhenTheProcessBegan) {
  double first = process_seconds();
  EXPECT_GE(first, 0);
  EXPECT_LT(first, 3600);
  timespec while_away{0, 30'000'000};
  ::nanosleep(&while_away, nullptr);
  EXPECT_GT(process_seconds(), first + 0.02);
}

TEST(System, MemoryAndProcessorsAreThoseThatTheControlGroupsLeave) {
  EXPECT_GT(available_memory({}), 1 << 20);
  EXPECT_EQ(available_memory({.memory_left = 1000}), 1000);
  EXPECT_EQ(usable_cpus(8, {}), 8);
  EXPECT_EQ(usable_cpus(8, {.cpus = 1.5}), 2);
  EXPECT_EQ(usable_cpus(8, {.cpus = 0.1}), 1);
  EXPECT_EQ(usable_cpus(8, {.cpus = 100}), 8);
}

TEST(System, RaisesTheLimitOfOpenFiles) {
  rlimit before, after;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = {16, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  raise_open_file_limit();
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace tokamak
