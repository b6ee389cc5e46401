#include "base/machine_roster.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tokamak {
namespace {

TEST(MachineRoster, TextsComeBack) {
  MachineReport report{.host = "node\"7", .address = "fd77::1", .port = 29501, .ranks = 8};
  EXPECT_EQ(parse_machine_report(to_text(report)), report);
  StartOrder order{.members = {{0, 0, 8}, {2, 8, 4}},
                   .world = 12,
                   .host = "node7",
                   .port = 29501,
                   .token = "secret",
                   .left_out = {{1, "twice"}}};
  EXPECT_EQ(parse_start_order(to_text(order)), order);
  order.status = 1;
  EXPECT_EQ(parse_start_order(to_text(order)), order);
  for (StartEnd end : {StartEnd{.kind = StartEnd::Kind::kEnded, .status = 143},
                       StartEnd{.kind = StartEnd::Kind::kDied, .machine = 2, .cause = "signal 9"},
                       StartEnd{.kind = StartEnd::Kind::kLost, .cause = "rank 3 on node7 hangs"}})
    EXPECT_EQ(parse_start_end(to_text(end)), end);
}

TEST(MachineRoster, WhatTheStoreTellsIsTheLossOfAMachine) {
  StartEnd end = parse_start_end("rank 2 on node7 is gone: its connection broke");
  EXPECT_EQ(end.kind, StartEnd::Kind::kLost);
  EXPECT_EQ(end.machine, 2);
  EXPECT_EQ(end.cause, "machine 2 on node7 is gone: its connection broke");
}

TEST(MachineRoster, TheRankThatIsNamedFirstIsBlamed) {
  EXPECT_EQ(blamed_rank("[ranks] rank 13 on node7 (CPU) hangs: ...; rank 0 on node1 has waited"), 13);
  EXPECT_EQ(blamed_rank("ranks 1 and 2 differ"), std::nullopt);
  EXPECT_EQ(blamed_rank("the disk is full"), std::nullopt);
}

TEST(MachineRoster, OneThatFailsTwiceIsLeftOut) {
  MachineRoster roster(3);
  EXPECT_FALSE(roster.note_failure(1, "once"));
  EXPECT_FALSE(roster.note_failure(2, "once"));
  EXPECT_EQ(roster.expected(), (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(roster.note_failure(1, "again"));
  EXPECT_EQ(roster.expected(), (std::vector<int>{0, 2}));
  EXPECT_EQ(roster.left_out(), (std::map<int, std::string>{{1, "again"}}));
}

TEST(MachineRoster, OneThatDoesNotComeIsWaitedForOnceItHasComeAgain) {
  MachineRoster roster(2);
  roster.give_up(1);
  EXPECT_EQ(roster.expected(), (std::vector<int>{0}));
  roster.came(1);
  EXPECT_EQ(roster.expected(), (std::vector<int>{0, 1}));
}

TEST(MachineRoster, AsManyMachinesTakePartAsTheMeshAllows) {
  std::map<int, MachineReport> come = {{0, {.ranks = 2}}, {2, {.ranks = 2}}, {3, {.ranks = 4}}};
  auto of_power = [](int ranks) {
    if ((ranks & (ranks - 1)) != 0) user_error("[mesh] got {}", ranks);
  };
  using Members = std::vector<StartOrder::Member>;
  StartOrder all = choose_machines(come, {}, of_power);
  EXPECT_EQ(all.members, (Members{{0, 0, 2}, {2, 2, 2}, {3, 4, 4}}));
  EXPECT_EQ(all.world, 8);
  come[3].ranks = 1;
  StartOrder two = choose_machines(come, {}, of_power);
  EXPECT_EQ(two.members, (Members{{0, 0, 2}, {2, 2, 2}}));
  EXPECT_EQ(two.world, 4);
  EXPECT_EQ(two.member(3), nullptr);
  EXPECT_EQ(two.member(2)->first_rank, 2);
}

std::vector<int> chosen(const std::vector<int>& come, const std::vector<int>& last) {
  std::map<int, MachineReport> reports;
  for (int machine : come) reports[machine] = {.ranks = 1};
  auto of_power = [](int ranks) {
    if ((ranks & (ranks - 1)) != 0) user_error("[mesh] got {}", ranks);
  };
  std::vector<int> machines;
  for (const StartOrder::Member& member : choose_machines(reports, last, of_power).members)
    machines.push_back(member.machine);
  return machines;
}

// What each has in memory is on the next one, too.
TEST(MachineRoster, OnesWaitWithWhomNothingIsLost) {
  using Machines = std::vector<int>;
  const Machines four = {0, 1, 2, 3};
  EXPECT_EQ(chosen({0, 1, 2}, four), (Machines{0, 2}));
  EXPECT_EQ(chosen({0, 2, 3}, four), (Machines{0, 2}));
  EXPECT_EQ(chosen({0, 1, 3}, four), (Machines{1, 3}));
  EXPECT_EQ(chosen({0, 1, 3}, {0, 1, 2, 3, 4, 5}), (Machines{0, 1}));  // with each of them something is lost
  EXPECT_EQ(chosen({0, 1, 2, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}), (Machines{0, 2, 4, 6}));
  EXPECT_EQ(chosen({0, 1, 2}, {0, 2}), (Machines{0, 2}));  // 1 waited before
  EXPECT_EQ(chosen({0, 1, 2}, {0, 1, 2}), (Machines{0, 1}));
  EXPECT_EQ(chosen({0, 1, 2}, {}), (Machines{0, 1}));
  EXPECT_EQ(chosen({1, 2, 3}, {1, 2, 3}), (Machines{1, 2}));
  EXPECT_EQ(chosen({3}, four), (Machines{3}));
}

TEST(MachineRoster, WhereNoneFitsTheErrorIsThatOfAll) {
  std::map<int, MachineReport> come = {{0, {.ranks = 2}}, {1, {.ranks = 3}}};
  auto none = [](int ranks) { user_error("[mesh] got {}", ranks); };
  try {
    choose_machines(come, {}, none);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "[mesh] got 5");
  }
  EXPECT_THROW(choose_machines({}, {}, [](int) {}), UserError);
}

}  // namespace
}  // namespace tokamak
