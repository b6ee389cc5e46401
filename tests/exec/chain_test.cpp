#include "exec/chain.h"

#include "graph/builder.h"
#include "ops/pointwise.h"
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <set>

namespace tokamak::test {
namespace {

constexpr int64_t kWidth = 100;

// x0 = sqrt(x) and then `count` times x[i] = gelu(x[i - 1]) + x[i - back], in two launches each.
Plan chain_plan(int count, int back = 1) {
  Graph graph;
  GraphBuilder g(graph);
  ValueIds x{sqrt(g, g.input("x", {DType::kF32, {kWidth}}))};
  for (int i = 0; i < count; ++i) {
    ValueId before = x[size_t(std::max(0, int(x.size()) - back))];
    x.push_back(add(g, gelu(g, x.back()), before));
  }
  graph.add_result("y", sqrt(g, x.back()));
  return make_plan(graph, {});
}

std::optional<Chain> chain_of(const Plan& plan) {
  return find_chain(plan, [](const Node& node) { return node.op != &op::sqrt; });
}

const Node& node_of(const Plan& plan, size_t launch) { return plan.graph.nodes()[size_t(plan.launches[launch].node)]; }

bool waits(const Chain::Link& link) { return ChainLink{link.awaited}.waits_for_kernels(); }

TEST(Chain, TakesTheLongestRun) {
  Plan plan = chain_plan(20);
  std::optional<Chain> chain = chain_of(plan);
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->first, 1);
  EXPECT_EQ(chain->links.size(), 40u);
  EXPECT_EQ(chain->link(0), nullptr);
  EXPECT_EQ(chain->link(1), &chain->links[0]);
  EXPECT_EQ(chain->link(41), nullptr);
}

TEST(Chain, IsNotForFew) {
  EXPECT_FALSE(chain_of(chain_plan(5)));
  EXPECT_TRUE(chain_of(chain_plan(6)));
}

// What the chain did not make is there; the first of a piece waits for kernels.
TEST(Chain, AwaitsWhatItMakes) {
  Plan plan = chain_plan(20);
  std::optional<Chain> chain = chain_of(plan);
  ASSERT_TRUE(chain);
  int first_ones = 0;
  for (size_t i = 0; i < chain->links.size(); ++i) {
    const Chain::Link& link = chain->links[i];
    const Node& node = node_of(plan, i + 1);
    ASSERT_EQ(link.awaited.size(), node.inputs.size());
    first_ones += waits(link);
    for (size_t k = 0; k < node.inputs.size(); ++k)
      EXPECT_EQ(link.awaited[k], !waits(link) && chain->places.contains(node.inputs[k])) << i << ' ' << k;
  }
  EXPECT_TRUE(waits(chain->links[0]));
  EXPECT_EQ(first_ones, 3);
}

TEST(Chain, HasAPlaceForEachValue) {
  Plan plan = chain_plan(20);
  std::optional<Chain> chain = chain_of(plan);
  ASSERT_TRUE(chain);
  std::set<int64_t> places;
  for (auto [value, place] : chain->places) {
    places.insert(place);
    EXPECT_LE(place + num_bytes(plan.graph.type(value)), chain->bytes);
  }
  EXPECT_EQ(places.size(), 40u);
  EXPECT_EQ(chain->bytes, 40 * 512);
}

// Run after run: a value is never written where the last one still lies, nor made empty before its last reader has
// ended.
TEST(Chain, MakesEmptyWhatNobodyReads) {
  for (auto [count, back] : {std::pair(6, 1), {8, 2}, {20, 2}, {33, 2}, {33, 7}, {60, 12}}) {
    Plan plan = chain_plan(count, back);
    std::optional<Chain> chain = chain_of(plan);
    ASSERT_TRUE(chain);
    std::set<int64_t> full;  // places that hold a value
    for (int run = 0; run < 3; ++run)
      for (size_t i = 0; i < chain->links.size(); ++i) {
        const Chain::Link& link = chain->links[i];
        if (waits(link)) {
          for (auto at = full.begin(); at != full.end();)
            at = *at >= link.emptied && *at < link.emptied + link.emptied_bytes ? full.erase(at) : std::next(at);
        } else {
          EXPECT_EQ(link.emptied_bytes, 0);
        }
        for (ValueId input : node_of(plan, i + 1).inputs)
          if (auto place = chain->places.find(input); place != chain->places.end())
            EXPECT_TRUE(full.contains(place->second)) << "launch " << i << " of " << count << ", run " << run;
        for (ValueId output : node_of(plan, i + 1).outputs)
          EXPECT_TRUE(full.insert(chain->places.at(output)).second) << "launch " << i << " of " << count;
      }
  }
}

// For what lies in a state's place nobody would wait.
TEST(Chain, SharesNoState) {
  for (bool shares : {false, true}) {
    Graph graph;
    GraphBuilder g(graph);
    ValueId state = g.state("state", {DType::kF32, {kWidth}}), x = sqrt(g, g.input("x", {DType::kF32, {kWidth}}));
    for (int i = 0; i < 10; ++i) x = gelu(g, x);
    ValueId next = add(g, x, state);
    graph.add_update(state, next);
    for (int i = 0; i < 10; ++i) x = i == 0 && shares ? add(g, x, next) : gelu(g, x);
    graph.add_result("y", x);
    Plan plan = make_plan(graph, {});
    ASSERT_NE(plan.locations[size_t(next)].argument, kNoValue) << "the update is made in place";
    EXPECT_EQ(chain_of(plan).has_value(), !shares);
  }
}

// What the first piece makes is made empty behind the last one, if that does not read it.
TEST(Chain, DoesNotReachFarBack) {
  EXPECT_TRUE(chain_of(chain_plan(20, 10)));
  EXPECT_FALSE(chain_of(chain_plan(20, 18)));
}

}  // namespace
}  // namespace tokamak::test
