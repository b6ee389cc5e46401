#include "profile/arena_use.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/graph_text.h"

namespace tokamak {
namespace {

TEST(ArenaUse, IsWhatEachNodeFindsTaken) {
  Plan plan = make_plan(test::parse(R"(graph g {
    input x = %0 : f32[64]
    %1 = exp(%0) : f32[64]
    %2 = reduce_sum(%1) {dims=[0], keep=true} : f32[1]
    %3 = exp(%2) : f32[1]
    result y = %3
  })"),
                        Platform());
  std::vector<int64_t> use = arena_use(plan);
  ASSERT_EQ(use.size(), 3u);
  EXPECT_EQ(use[0], 256);
  EXPECT_EQ(use[1], 256 + 4) << "what it reads and what it makes";
  EXPECT_EQ(use[2], 4) << "what was read last is free, and the rest is updated in place";
  EXPECT_LE(*std::max_element(use.begin(), use.end()), plan.arena_bytes);
  EXPECT_EQ(block_label(plan, plan.blocks[0]), "exp f32[64]");
}

}  // namespace
}  // namespace tokamak
