#include "plan/stream_order.h"

#include "base/error.h"
#include "graph/rewriter.h"
#include "graph/text.h"
#include "ops/all_ops.h"
#include "plan/print_plan.h"
#include "tests/plan/interleaved_run.h"
#include "tests/plan/random_graph.h"
#include "tests/support/note_op.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Nodes 1, 3 and 4 go beside; 2 writes into the arena meanwhile.
constexpr const char* kStep = R"(graph g {
  input x = %0 : f32[16]
  state s = %1 : f32[16]
  state t = %2 : f32[16]
  %3 = exp(%0) #backward : f32[16]
  %4 = neg(%3) #backward : f32[16]
  %5 = tanh(%3) #backward : f32[16]
  %6 = neg(%5) #backward : f32[16]
  %7 = mul(%5, %3) #backward : f32[16]
  %8 = exp(%7) : f32[16]
  result y = %8
  update %1 = %4
  update %2 = %6
})";

Plan two_streams(std::string_view text) { return make_plan(parse_graph(text, find_op), {}, 2); }

// Every launch on one of these streams at random; values stay where they lie.
Plan scattered(Plan plan, const std::vector<PlannedStream>& streams, uint32_t seed) {
  std::mt19937 random(seed);
  StreamAssignment assignment{streams, {}, {}};
  for (size_t n = 0; n < plan.graph.nodes().size(); ++n) assignment.stream.push_back(int(random() % streams.size()));
  order_streams(plan, assignment);
  return plan;
}

const std::vector<PlannedStream> kThree{{"a"}, {"b"}, {"c"}};

// Nodes of the backward pass at random, as many as on the other side.
Plan random_plan(uint32_t seed) {
  std::mt19937 random(seed);
  Graph graph = testing::RandomGraph(seed).make(5 + int(seed % 40));
  change_nodes(graph, [&](Node& node) {
    if (random() % 2) node.phase = Phase::kBackward;
    return true;
  });
  return make_plan(std::move(graph), {}, 2);
}

TEST(StreamOrder, Printed) {
  EXPECT_EQ(print_plan(two_streams(kStep)),
            "plan g: arena 128, parameters 0, states 128, inputs 64, scratch 0\n"
            "0 exp(%0@x) -> %3@0\n"
            "1 neg(%3@0) -> %4@s on stream 1 after 0\n"
            "2 tanh(%3@0) -> %5@64\n"
            "3 neg(%5@64) -> %6@t on stream 1 after 2\n"
            "4 mul(%5@64, %3@0) -> %7@64 on stream 1\n"
            "5 exp(%7@64) -> %8@64 after 4\n");
}

// Stream 1 has waited for node 0 when node 3 comes to it.
TEST(StreamOrder, NothingIsWaitedForTwice) {
  Plan plan = two_streams(R"(graph g {
    input x = %0 : f32[16]
    state s = %1 : f32[16]
    state t = %2 : f32[16]
    %3 = exp(%0) : f32[16]
    %4 = exp(%3) : f32[16]
    %5 = neg(%4) #backward : f32[16]
    %6 = mul(%3, %3) #backward : f32[16]
    update %1 = %5
    update %2 = %6
  })");
  std::vector<std::vector<int>> after;
  for (const Launch& launch : plan.launches) after.push_back(launch.after);
  EXPECT_EQ(after, (std::vector<std::vector<int>>{{}, {}, {1}, {}}));
}

// In every order that the waits allow, every launch finds its operands and nobody writes where another one works.
TEST(StreamOrder, RandomGraphsInEveryOrder) {
  int beside = 0, waits = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Plan plan = random_plan(seed);
    for (uint32_t order = 0; order < 5; ++order) {
      testing::InterleavedRun(plan, order).run();
      if (HasFatalFailure()) return;
    }
    for (const Launch& launch : plan.launches) beside += launch.stream, waits += int(launch.after.size());
  }
  EXPECT_GT(beside, 2000);  // else the test would show nothing
  EXPECT_GT(waits, 2000);
}

// The same, in whatever way three streams share the launches. What one of two others has waited for is not waited for
// again.
TEST(StreamOrder, ThreeStreamsInEveryOrder) {
  int several = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Plan plan = scattered(random_plan(seed), kThree, seed);
    verify_streams(plan);
    for (uint32_t order = 0; order < 3; ++order) {
      testing::InterleavedRun(plan, order).run();
      if (HasFatalFailure()) return;
    }
    for (const Launch& launch : plan.launches) several += launch.after.size() == 2;
  }
  EXPECT_GT(several, 200);
}

TEST(StreamOrder, WaitsForSeveralArePrinted) {
  Graph graph = parse_graph(R"(graph g {
    input x = %0 : f32[16]
    %1 = exp(%0) : f32[16]
    %2 = neg(%0) : f32[16]
    %3 = mul(%1, %2) : f32[16]
    result y = %3
  })",
                            find_op);
  Plan plan = make_plan(std::move(graph), {}, 1);
  order_streams(plan, {kThree, {0, 1, 2}, {}});
  EXPECT_NE(print_plan(plan).find(" on stream 2 after 0, 1\n"), std::string::npos) << print_plan(plan);
}

TEST(StreamOrder, WhatFollowsFromOtherWaitsIsNotWaitedFor) {
  Graph graph = parse_graph(R"(graph g {
    input x = %0 : f32[16]
    %1 = exp(%0) : f32[16]
    %2 = neg(%1) : f32[16]
    %3 = mul(%1, %2) : f32[16]
    result y = %3
  })",
                            find_op);
  Plan plan = make_plan(std::move(graph), {}, 1);
  order_streams(plan, {kThree, {0, 1, 2}, {}});
  EXPECT_EQ(plan.launches[1].after, (std::vector<int>{0}));
  EXPECT_EQ(plan.launches[2].after, (std::vector<int>{1})) << "which has waited for 0";
  verify_streams(plan);
}

TEST(StreamOrder, EffectsOnTheSameKeepTheirOrder) {
  Graph graph = test::parse_with_notes(R"(graph g {
    input x = %0 : f32[16]
    input y = %1 : f32[16]
    input z = %2 : f32[16]
    %3 = note(%0) {id=1, on="a"} : f32[16]
    %4 = note(%1) {id=2, on="b"} : f32[16]
    %5 = note(%2) {id=3, on="a"} : f32[16]
    result a = %3
    result b = %4
    result c = %5
  })");
  Plan plan = make_plan(std::move(graph), {}, 1);
  order_streams(plan, {kThree, {0, 1, 2}, {}});
  EXPECT_TRUE(plan.launches[1].after.empty());
  EXPECT_EQ(plan.launches[2].after, (std::vector<int>{0}));
}

TEST(StreamOrder, EveryWaitIsNeeded) {
  int removed = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Plan plan = seed % 2 ? random_plan(seed) : scattered(random_plan(seed), kThree, seed);
    for (size_t i = 0; i < plan.launches.size(); ++i) {
      for (size_t wait = 0; wait < plan.launches[i].after.size(); ++wait) {
        Plan broken = plan;
        broken.launches[i].after.erase(broken.launches[i].after.begin() + int(wait));
        EXPECT_THROW(verify_streams(broken), InternalError) << "seed " << seed << ", launch " << i;
        ++removed;
      }
    }
  }
  EXPECT_GT(removed, 100);
}

TEST(StreamOrder, AnEarlierWaitIsNotEnough) {
  Plan plan = two_streams(kStep);
  plan.launches[3].after = {0};
  EXPECT_THROW(verify_streams(plan), InternalError);
}

TEST(StreamOrder, WaitsGoBackToTheOtherStream) {
  Plan plan = two_streams(kStep);
  verify_streams(plan);
  for (int wrong : {1, 3, 5}) {  // the same stream, itself, a later launch
    Plan broken = plan;
    broken.launches[3].after = {wrong};
    EXPECT_THROW(verify_streams(broken), InternalError) << wrong;
  }
}

// The side stream may go on with the state's update while the next run begins: until that reads the state.
constexpr const char* kReach = R"(graph g {
  input x = %0 : f32[16]
  state s = %1 : f32[16]
  %2 = exp(%0) : f32[16]
  %3 = tanh(%1) : f32[16]
  %4 = mul(%2, %3) : f32[16]
  %5 = sub(%1, %4) : f32[16]
  result y = %2
  update %1 = %5
})";

Plan reaching_plan() {
  Plan plan = make_plan(parse_graph(kReach, find_op), {}, 1);
  order_streams(plan, {{{"compute"}, {.name = "side", .ends_with_run = false}}, {0, 0, 0, 1}, {}});
  return plan;
}

TEST(StreamOrder, TheNextRunWaitsForWhatReachesIntoIt) {
  Plan plan = reaching_plan();
  verify_streams(plan);
  EXPECT_TRUE(plan.launches[0].after_last_run.empty()) << print_plan(plan);
  EXPECT_EQ(plan.launches[1].after_last_run, (std::vector<int>{1})) << print_plan(plan);
  EXPECT_TRUE(plan.launches[2].after_last_run.empty()) << "the stream has waited already";
  EXPECT_NE(print_plan(plan).find("after stream 1 of the last run"), std::string::npos);
  std::swap(plan.launches[1].after_last_run, plan.launches[2].after_last_run);
  EXPECT_THROW(verify_streams(plan), InternalError) << "too late";
}

TEST(StreamOrder, WhatIsTouchedBetweenRunsMustNotBeReached) {
  Plan plan = reaching_plan();
  std::vector<int> stream = {1, 0, 0, 0};  // writes a result, reads an input
  order_streams(plan, {plan.streams, stream, {}});
  EXPECT_THROW(verify_streams(plan), InternalError);
  plan.streams[1].ends_with_run = true;
  verify_streams(plan);
}

// An output that lies where a launch beside still reads.
TEST(StreamOrder, SharedBytesAreSeen) {
  Plan plan = two_streams(kStep);
  plan.locations[5].offset = plan.locations[3].offset + 60;
  EXPECT_THROW(verify_streams(plan), InternalError);
}

}  // namespace
}  // namespace tokamak
