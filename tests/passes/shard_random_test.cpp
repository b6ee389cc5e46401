// The property that shard must have: whatever the graph, the mesh and the cuts of its arguments, the ranks together
// compute what the graph does.
#include "passes/shard.h"
#include "tests/e2e/random_model.h"
#include "tests/passes/random_cuts.h"
#include "tests/passes/sharded_run.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

constexpr uint32_t kBaseSeed = 20240607;
constexpr int kGraphs = 3000;
constexpr double kTolerance = 1e-7;  // both in double, sums in another order

TEST(RandomShards, ComputeWhatTheGraphDoes) {
  std::map<std::string_view, int> collectives;
  int failures = 0;
  for (uint32_t seed = kBaseSeed; seed < kBaseSeed + kGraphs && failures < 3; ++seed) {
    Graph graph = RandomModel(seed).make();
    std::mt19937 random(seed);
    Mesh mesh = random_mesh(random);
    ArgumentCuts cuts = random_cuts(graph, mesh, random);
    std::string fault;
    Graph sharded;
    try {
      sharded = shard_graph(graph, mesh, cuts);
      verify(sharded);
      for (const Node& node : sharded.nodes()) ++collectives[node.op->name];
      fault = find_sharding_fault(graph, sharded, mesh, arguments_of(graph, seed), kTolerance);
    } catch (const std::exception& error) {
      fault = error.what();
    }
    if (fault.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << fault << "\n" << print(graph) << "became\n" << print(sharded);
  }
  for (const char* op : {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "part"})
    EXPECT_GT(collectives[op], 20) << op;
}

}  // namespace
}  // namespace tokamak::test
