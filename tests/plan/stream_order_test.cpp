#include "plan/stream_order.h"

#include "base/error.h"
#include "graph/rewriter.h"
#include "graph/text.h"
#include "ops/all_ops.h"
#include "plan/print_plan.h"
#include "tests/plan/random_graph.h"
#include "tests/plan/two_streams.h"

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
  std::vector<int> after;
  for (const Launch& launch : plan.launches) after.push_back(launch.after);
  EXPECT_EQ(after, (std::vector<int>{-1, -1, 1, -1}));
}

// In every order that the waits allow, every launch finds its operands and nobody writes where another one works.
TEST(StreamOrder, RandomGraphsInEveryOrder) {
  int beside = 0, waits = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Plan plan = random_plan(seed);
    for (uint32_t order = 0; order < 5; ++order) {
      testing::TwoStreams(plan, order).run();
      if (HasFatalFailure()) return;
    }
    for (const Launch& launch : plan.launches) beside += launch.stream, waits += launch.after >= 0;
  }
  EXPECT_GT(beside, 2000);  // else the test would show nothing
  EXPECT_GT(waits, 2000);
}

TEST(StreamOrder, EveryWaitIsNeeded) {
  int removed = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    Plan plan = random_plan(seed);
    for (size_t i = 0; i < plan.launches.size(); ++i) {
      Plan broken = plan;
      if (std::exchange(broken.launches[i].after, -1) < 0) continue;
      EXPECT_THROW(verify_streams(broken), InternalError) << "seed " << seed << ", launch " << i;
      ++removed;
    }
  }
  EXPECT_GT(removed, 100);
}

TEST(StreamOrder, AnEarlierWaitIsNotEnough) {
  Plan plan = two_streams(kStep);
  plan.launches[3].after = 0;
  EXPECT_THROW(verify_streams(plan), InternalError);
}

TEST(StreamOrder, WaitsGoBackToTheOtherStream) {
  Plan plan = two_streams(kStep);
  verify_streams(plan);
  for (int wrong : {1, 3, 5}) {  // the same stream, itself, a later launch
    Plan broken = plan;
    broken.launches[3].after = wrong;
    EXPECT_THROW(verify_streams(broken), InternalError) << wrong;
  }
}

// An output that lies where a launch beside still reads.
TEST(StreamOrder, SharedBytesAreSeen) {
  Plan plan = two_streams(kStep);
  plan.locations[5].offset = plan.locations[3].offset + 60;
  EXPECT_THROW(verify_streams(plan), InternalError);
}

}  // namespace
}  // namespace tokamak
