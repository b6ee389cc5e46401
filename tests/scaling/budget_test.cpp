#include "scaling/budget.h"

#include "config/cluster.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Budget, ReadsANumberAndItsUnit) {
  EXPECT_EQ(parse_budget("1000gpuh").amount, 1000);
  EXPECT_EQ(parse_budget("1000gpuh").unit, BudgetUnit::kGpuHours);
  EXPECT_EQ(parse_budget("10kgpuh").amount, 10e3);
  EXPECT_EQ(parse_budget("2.5days").unit, BudgetUnit::kDays);
  EXPECT_EQ(parse_budget("1day").unit, BudgetUnit::kDays);
  EXPECT_EQ(parse_budget("36h").unit, BudgetUnit::kHours);
  EXPECT_EQ(parse_budget("5000USD").unit, BudgetUnit::kDollars);
  EXPECT_EQ(parse_budget("1e21FLOP").amount, 1e21);
  EXPECT_EQ(describe(parse_budget("1e21FLOPs")), "1e+21 FLOPs");
  EXPECT_EQ(describe(parse_budget("7days")), "7 days");
}

TEST(Budget, RefusesWhatHasNoUnitOrIsNothing) {
  for (const char* text : {"1000", "gpuh", "-3days", "0USD", "nandays", "infh", "5 days", "3weeks", ""})
    expect_user_error([&] { parse_budget(text); }, {"[budget] expected a number with gpuh", "give a number"});
}

TEST(Budget, SecondsOfAllGpus) {
  ClusterConfig cluster = read_cluster("h200");
  cluster.price.value = 2;
  EXPECT_EQ(seconds_of(parse_budget("16gpuh"), cluster, 8), 2 * 3600);
  EXPECT_EQ(seconds_of(parse_budget("3h"), cluster, 8), 3 * 3600);
  EXPECT_EQ(seconds_of(parse_budget("2days"), cluster, 8), 2 * 86400);
  EXPECT_EQ(seconds_of(parse_budget("32USD"), cluster, 8), 2 * 3600);
  EXPECT_EQ(seconds_of(parse_budget("1e21FLOP"), cluster, 8), 0);
  cluster.price.value = 0;
  expect_user_error([&] { seconds_of(parse_budget("32USD"), cluster, 8); },
                    {"[budget] expected a cluster with a price", "gpuh"});
}

}  // namespace
}  // namespace tokamak
