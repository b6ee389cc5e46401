#include "base/made_once.h"

#include "base/parallel_tasks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

using namespace tokamak;

TEST(MadeOnce, IsMadeByOneOfAllWhoAsk) {
  MadeOnce<int> value;
  std::atomic<int> made = 0;
  auto make = [&] { return ++made + 6; };
  parallel_tasks(50, [&](int64_t) { EXPECT_EQ(value.get(make), 7); });
  EXPECT_EQ(made, 1);
}

TEST(MadeOnce, IsMadeByTheNextWhereItFailed) {
  MadeOnce<int> value;
  EXPECT_THROW(value.get([]() -> int { throw std::runtime_error("none"); }), std::runtime_error);
  EXPECT_EQ(value.get([] { return 3; }), 3);
}
