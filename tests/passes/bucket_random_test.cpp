// The property that bucket must have: on every rank the graph computes what it did before, to the bit.
#include "passes/bucket.h"

#include "graph/rewriter.h"
#include "ops/collective.h"
#include "passes/apply_recompute.h"
#include "passes/gathered_parameters.h"
#include "tests/e2e/random_model.h"
#include "tests/passes/random_cuts.h"
#include "tests/passes/sharded_run.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

constexpr uint32_t kBaseSeed = 20260612;
constexpr int kGraphs = 1500;

int count_joined(const Graph& graph) {
  return int(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                           [](const Node& node) { return node.op->together && node.inputs.size() > 1; }));
}

// Of parameters.
int count_gathers_of_backward(const Graph& graph) {
  std::vector<bool> gathering = find_gathering(graph);
  int count = 0;
  for (size_t n = 0; n < gathering.size(); ++n)
    count += gathering[n] && graph.nodes()[n].op == &op::all_gather && graph.nodes()[n].phase == Phase::kBackward;
  return count;
}

// What is computed again gathers its parameters again, and shares them with the rest of the backward pass.
TEST(RandomBuckets, RecomputationComputesWhatTheGraphDoes) {
  int failures = 0, more = 0;
  for (uint32_t seed = kBaseSeed; seed < kBaseSeed + kGraphs && failures < 3; ++seed) {
    Graph graph = RandomModel(seed).make();
    std::mt19937 random(seed);
    Mesh mesh = random_mesh(random);
    Graph sharded = shard_graph(graph, mesh, random_cuts(graph, mesh, random)), again = sharded;
    change_nodes(again, [&](Node& node) {
      node.recompute = node.phase == Phase::kForward && !node.op->effects && below(random, 2);
      return true;
    });
    std::string fault;
    try {
      apply_recompute(again, {});
      verify(again);
      more += count_gathers_of_backward(again) > count_gathers_of_backward(sharded);
      bucket_graph(again, {4000, 400, 400});
      fault = find_difference(sharded, again, mesh, arguments_of_ranks(sharded, mesh, arguments_of(graph, seed)));
    } catch (const std::exception& error) {
      fault = error.what();
    }
    if (fault.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << fault << "\n" << print(sharded) << "became\n" << print(again);
  }
  EXPECT_GT(more, 20);
}

TEST(RandomBuckets, ComputeWhatTheGraphDoes) {
  static constexpr int64_t kBytes[] = {40, 400, 4000, 400000};
  int failures = 0, joined = 0, moved = 0;
  for (uint32_t seed = kBaseSeed; seed < kBaseSeed + kGraphs && failures < 3; ++seed) {
    Graph graph = RandomModel(seed).make();
    std::mt19937 random(seed);
    Mesh mesh = random_mesh(random);
    Graph sharded = shard_graph(graph, mesh, random_cuts(graph, mesh, random)), bucketed = sharded;
    std::string fault;
    try {
      bool changed =
          bucket_graph(bucketed, {kBytes[below(random, 4)], kBytes[below(random, 4)], kBytes[below(random, 4)]});
      verify(bucketed);
      fault = find_difference(sharded, bucketed, mesh, arguments_of_ranks(sharded, mesh, arguments_of(graph, seed)));
      joined += count_joined(bucketed);
      moved += changed && count_joined(bucketed) == 0;
    } catch (const std::exception& error) {
      fault = error.what();
    }
    if (fault.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << fault << "\n" << print(sharded) << "became\n" << print(bucketed);
  }
  EXPECT_GT(joined, 200);
  EXPECT_GT(moved, 20) << "gathers that run ahead by themselves";
}

}  // namespace
}  // namespace tokamak::test
