// Collectives on a stream of their own: which, in what order, what waits for them, and how long their operands stay.
#include "graph/rewriter.h"
#include "ops/collective.h"
#include "plan/print_plan.h"
#include "plan/stream_order.h"
#include "plan/timeline.h"
#include "tests/plan/interleaved_run.h"
#include "tests/plan/random_graph.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// A target on which launches take a second each, and collectives three, but no memory.
Target equal_launches(int streams = 2) {
  Target target;
  target.f32_flops = target.pointwise_flops = target.memory_bandwidth = target.link_bandwidth = 1e30;
  target.launch_seconds = 1;
  target.link_seconds = 3;
  target.streams = streams;
  return target;
}

// The gradient %3 is summed over ranks while the pass goes on.
constexpr std::string_view kStep = R"(graph g {
  input x = %0 : f32[16]
  state s = %1 : f32[16]
  %2 = exp(%0) #backward : f32[16]
  %3 = neg(%2) #backward : f32[16]
  %4 = all_reduce(%3) {axis="data", reduction="sum", size=2} #backward : f32[16]
  %5 = exp(%2) #backward : f32[16]
  %6 = exp(%5) #backward : f32[16]
  %7 = exp(%6) #backward : f32[16]
  %8 = exp(%7) #backward : f32[16]
  %9 = all_reduce(%8) {axis="data", reduction="sum", size=2} #backward : f32[16]
  %10 = mul(%4, %9) #update : f32[16]
  update %1 = %10
})";

Plan plan_of(std::string_view text, const Target& target, int streams = 1) {
  return make_plan(test::parse(text), target, streams);
}

TEST(CommunicationStream, HasTheCollectives) {
  Plan plan = plan_of(kStep, equal_launches());
  ASSERT_EQ(plan.streams.size(), 2u);
  EXPECT_EQ(plan.streams[1].name, "communication");
  EXPECT_NE(plan.streams[1].resource, plan.streams[0].resource);
  for (const Launch& launch : plan.launches)
    EXPECT_EQ(launch.stream, plan.graph.nodes()[size_t(launch.node)].op == &op::all_reduce) << launch.node;
  EXPECT_EQ(plan.launches[2].after, (std::vector<int>{1}));
  EXPECT_EQ(plan.launches[8].after, (std::vector<int>{7}));
}

// Made beside one another on stream 0 they would all take memory until the last collective.
TEST(CommunicationStream, HasCopiesForCollectivesOneAfterTheOther) {
  Plan plan = plan_of(R"(graph g {
    input a = %0 : f32[15]
    input b = %1 : f32[15]
    input c = %2 : f32[15]
    %3 = pad(%0) {after=1, before=0, dim=0} #update : f32[16]
    %4 = reduce_scatter(%3) {axis="data", dims=[0], size=2} #update : f32[8]
    %5 = pad(%1) {after=1, before=0, dim=0} #update : f32[16]
    %6 = reduce_scatter(%5) {axis="data", dims=[0], size=2} #update : f32[8]
    %7 = pad(%2) {after=1, before=0, dim=0} #update : f32[16]
    %8 = add(%7, %7) #update : f32[16]
    result x = %4
    result y = %6
    result z = %8
  })",
                      equal_launches());
  std::vector<int> streams;
  for (const Launch& launch : plan.launches) streams.push_back(launch.stream);
  EXPECT_EQ(streams, (std::vector<int>{1, 1, 1, 1, 0, 0})) << "what others read stays";
  EXPECT_EQ(plan.locations[3].offset, plan.locations[5].offset) << "the second copy has the place of the first";
}

TEST(CommunicationStream, IsNotThereOnATargetOfOneStreamOrWithoutCollectives) {
  EXPECT_EQ(plan_of(kStep, equal_launches(1)).streams.size(), 1u);
  EXPECT_EQ(
      plan_of("graph g { input x = %0 : f32[4] %1 = exp(%0) : f32[4] result y = %1 }", equal_launches()).streams.size(),
      1u);
}

// All but the second all_reduce, for which the update waits, is hidden: 7 seconds of others, 3 of that.
TEST(CommunicationStream, HidesWhatCanBeHidden) {
  EXPECT_DOUBLE_EQ(plan_of(kStep, equal_launches(1)).seconds, 13);
  Plan plan = plan_of(kStep, equal_launches());
  EXPECT_DOUBLE_EQ(plan.seconds, 10);
  EXPECT_EQ(exposed_seconds(plan, simulate(plan)), (std::vector<double>{0, 0, 0, 0, 0, 0, 0, 3, 0}));
  EXPECT_DOUBLE_EQ(seconds_without_collectives(plan), 7);
}

// The first takes half of the device for its three seconds.
TEST(CommunicationStream, TakesUnitsFromWhatRunsBeside) {
  Target target = equal_launches();
  target.link_units = 0.5;
  Plan plan = plan_of(kStep, target);
  EXPECT_DOUBLE_EQ(plan.seconds, 11.5);
  EXPECT_DOUBLE_EQ(seconds_without_collectives(plan), 7);
}

TEST(CommunicationStream, AGatheringHasItsShareOfTheLink) {
  Target target = equal_launches();
  target.link_bandwidth = 32;
  target.link_seconds = 0;
  target.gather_share = 0.5;
  auto seconds = [&](const std::string& collective) {
    return plan_of("graph g { input x = %0 : f32[4] %1 = " + collective + " result y = %1 }", target).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(R"(all_reduce(%0) {axis="data", reduction="sum", size=2} : f32[4])"), 0.5) << "16 bytes";
  EXPECT_DOUBLE_EQ(seconds(R"(all_gather(%0) {axis="data", dims=[0], size=2} : f32[8])"), 1) << "16 at half the rate";
}

// The first all_reduce takes as long as nodes 3, 4 and 5, and may be a little late: these and node 6 must not write
// over its operand.
TEST(CommunicationStream, OperandsStayUntilTheCollectiveIsDone) {
  auto last_of = [](const Plan& plan, ValueId value) {
    for (const Block& block : plan.blocks)
      if (std::count(block.values.begin(), block.values.end(), value)) return block.last;
    return -1;
  };
  EXPECT_EQ(last_of(plan_of(kStep, equal_launches(1)), 3), 2);
  EXPECT_EQ(last_of(plan_of(kStep, equal_launches()), 3), 6);
  Target half = equal_launches();
  half.link_units = 0.5;
  EXPECT_EQ(last_of(plan_of(kStep, half), 3), 4) << "launches beside it take twice as long";
}

// The gradient of a weight goes beside where only the sum over ranks reads it; what leads on does not.
TEST(CommunicationStream, LeavesGradientsToTheSideStream) {
  Plan plan = plan_of(R"(graph g {
    input x = %0 : f32[16]
    state s = %1 : f32[16]
    state t = %2 : f32[16]
    %3 = exp(%0) : f32[16]
    %4 = neg(%3) #backward : f32[16]
    %5 = tanh(%3) #backward : f32[16]
    %6 = all_reduce(%5) {axis="tensor", reduction="sum", size=2} #backward : f32[16]
    %7 = exp(%3) #backward : f32[16]
    %8 = mul(%6, %7) #backward : f32[16]
    %9, %10 = all_reduce(%4, %8) {axis="data", reduction="sum", size=2} #backward : f32[16], f32[16]
    %11 = mul(%10, %9) #update : f32[16]
    %12 = neg(%9) #update : f32[16]
    update %1 = %11
    update %2 = %12
  })",
                      equal_launches(), 2);
  std::vector<std::string> names;
  for (const Launch& launch : plan.launches) names.push_back(plan.streams[size_t(launch.stream)].name);
  const std::string c = "compute", s = "side", l = "communication";
  EXPECT_EQ(names, (std::vector<std::string>{c, s, c, l, c, s, l, c, c})) << print_plan(plan);
}

// The graph with sums over ranks of some of its values, on two axes, by one or two at a time.
Graph with_collectives(const Graph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  Rewriter rewriter(graph);
  ValueIds waiting;
  for (const Node& node : graph.nodes()) {
    rewriter.copy(node);
    if (random() % 3 == 0) waiting.push_back(node.outputs[0]);
    if (waiting.empty() || random() % 2) continue;
    std::string axis = random() % 2 ? "data" : "tensor";
    rewriter.replace(waiting, rewriter.in_place_of(node).add(op::all_reduce, rewriter.map(waiting),
                                                             {{"axis", axis}, {"reduction", "sum"}, {"size", 2}}));
    waiting.clear();
  }
  return rewriter.finish();
}

TEST(CommunicationStream, RandomGraphsInEveryOrder) {
  int collectives = 0, waits = 0, sides = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Graph graph = with_collectives(testing::RandomGraph(seed).make(5 + int(seed % 40)), seed);
    change_nodes(graph, [&](Node& node) {
      if (random() % 2) node.phase = Phase::kBackward;
      return true;
    });
    Plan plan = make_plan(std::move(graph), equal_launches(), 1 + int(seed % 2));
    verify_streams(plan);
    for (uint32_t order = 0; order < 4; ++order) {
      testing::InterleavedRun(plan, order).run();
      if (HasFatalFailure()) return;
    }
    sides += plan.streams.size() == 3;
    for (const Launch& launch : plan.launches)
      if (launch.stream > 0) ++collectives, waits += int(launch.after.size());
  }
  EXPECT_GT(collectives, 2000);  // else the test would show nothing
  EXPECT_GT(waits, 2000);
  EXPECT_GT(sides, 200);
}

// In the order of the graph, so in the same one on all ranks.
TEST(CommunicationStream, CollectivesKeepTheirOrder) {
  Plan plan = make_plan(with_collectives(testing::RandomGraph(3).make(40), 3), equal_launches());
  int last = -1;
  for (const Launch& launch : plan.launches) {
    if (!plan.graph.nodes()[size_t(launch.node)].op->together) continue;
    EXPECT_EQ(launch.stream, 1);
    EXPECT_GT(launch.node, last);
    last = launch.node;
  }
  EXPECT_GT(last, 0);
}

}  // namespace
}  // namespace tokamak
