#include "passes/placement.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak {
namespace {

// What a rank sends of a value of 64 bytes over four ranks; factors that all of them have in common are left out.
TEST(Placement, MovesArePricedByWhatTheySend) {
  auto cost = [](const Placement& from, const Placement& to) { return move_cost(from, to, 64, 4); };
  const Placement whole, rows = Placement::cut(0, 1, false), columns = Placement::cut(1, 1, false),
                         sum{.kind = Placement::Kind::kSum}, max{.kind = Placement::Kind::kMax};
  EXPECT_EQ(cost(rows, rows), 0);
  EXPECT_EQ(cost(whole, rows), 0) << "a rank takes its part of what it has";
  EXPECT_EQ(cost(rows, whole), 64) << "gathers";
  EXPECT_EQ(cost(rows, columns), 16) << "an exchange: a part of a part to each";
  EXPECT_EQ(cost(sum, rows), 64) << "scatters";
  EXPECT_EQ(cost(sum, whole), 128) << "scatters and gathers";
  EXPECT_EQ(cost(max, whole), 128);
  EXPECT_EQ(cost(max, rows), 128) << "maxima are not scattered";
  EXPECT_TRUE(std::isinf(cost(whole, sum))) << "what is whole is no term";
}

}  // namespace
}  // namespace tokamak
