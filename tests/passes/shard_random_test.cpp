// The property that shard must have: whatever the graph, the mesh and the cuts of its arguments, the ranks together
// compute what the graph does.
#include "passes/shard.h"
#include "tests/e2e/random_model.h"
#include "tests/passes/sharded_run.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak::test {
namespace {

constexpr uint32_t kBaseSeed = 20240607;
constexpr int kGraphs = 3000;
constexpr double kTolerance = 1e-7;  // both in double, sums in another order

int below(std::mt19937& random, int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); }

// One to three axes, up to 12 ranks.
Mesh random_mesh(std::mt19937& random) {
  static constexpr int64_t kSizes[] = {2, 3, 2, 4};
  Mesh mesh;
  for (const char* name : {"data", "context", "tensor"})
    if (int64_t size = kSizes[below(random, 4)]; below(random, 2) && mesh.num_ranks() * size <= 12)
      mesh.axes.push_back({name, size});
  if (mesh.axes.empty()) mesh.axes.push_back({"tensor", 2});
  return mesh;
}

// For every argument and axis, often, some dim and number of blocks that can be cut.
ArgumentCuts random_cuts(const Graph& graph, const Mesh& mesh, std::mt19937& random) {
  ArgumentCuts cuts;
  for (const Argument& argument : graph.arguments()) {
    const Shape& shape = graph.shape(argument.value);
    std::vector<Cut>& of_argument = cuts[argument.value];
    for (const MeshAxis& axis : mesh.axes) {
      for (int tries = 0; tries < 3 && !shape.empty() && below(random, 3); ++tries) {
        static constexpr int64_t kBlocks[] = {1, 1, 2, 3, 4};
        of_argument.push_back({axis.name, axis.size, below(random, int(shape.size())), kBlocks[below(random, 5)]});
        if (can_cut(shape, of_argument)) break;
        of_argument.pop_back();
      }
    }
  }
  return cuts;
}

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
