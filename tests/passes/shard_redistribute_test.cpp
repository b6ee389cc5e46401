// Where a graph itself says how a value should lie.
#include "passes/shard.h"
#include "passes/step_mesh.h"
#include "tests/passes/sharded_run.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Four matrices, of which each is multiplied by itself where all of it is, and which an update wants as they came.
constexpr const char* kText = R"(graph g {
  state x = %0 : f32[4,6,6]
  %1 = redistribute(%0) {axes="data tensor", dim=0} #update : f32[4,6,6]
  %2 = matmul(%1, %1) {trans_a=false, trans_b=false} #update : f32[4,6,6]
  %3 = redistribute(%2) #update : f32[4,6,6]
  update %0 = %3
})";

std::string share_text(const Graph& graph, const Mesh& mesh, const ArgumentCuts& cuts) {
  Graph share = shard_graph(graph, mesh, cuts);
  verify(share);
  EXPECT_EQ(test::find_sharding_fault(graph, share, mesh, test::random_arguments(graph, 3), 1e-12), "");
  std::string text;
  for (const Node& node : share.nodes())
    text += std::string(node.op->name) + to_string(share.type(node.outputs[0])) + " ";
  return text;
}

TEST(ShardRedistribute, MovesAValueWhereItIsToldAndBack) {
  Graph graph = test::parse(kText);
  const Mesh two{{{"data", 2}}}, four{{{"data", 2}, {"tensor", 2}}}, three{{{"data", 3}}};
  EXPECT_EQ(share_text(graph, two, {{0, {{"data", 2, 1}}}}),
            "all_to_allf32[2,6,6] matmulf32[2,6,6] all_to_allf32[4,3,6] ");
  EXPECT_EQ(share_text(graph, four, {{0, {{"data", 2, 1}, {"tensor", 2, 2, 3}}}}),
            "all_to_allf32[2,6,3] all_to_allf32[1,6,6] matmulf32[1,6,6] all_to_allf32[2,3,6] all_to_allf32[4,3,3] ");
  EXPECT_EQ(share_text(graph, two, {}), "partf32[2,6,6] matmulf32[2,6,6] all_gatherf32[4,6,6] ") << "each had all";
}

// Three ranks do not divide four matrices: what they have of each stays as it is, and the product needs all of it.
TEST(ShardRedistribute, LeavesWhatCannotBeCutSo) {
  Graph graph = test::parse(kText);
  const Mesh three{{{"data", 3}}};
  std::string text = share_text(graph, three, {{0, {{"data", 3, 1}}}});
  EXPECT_EQ(text.find("all_to_all"), text.npos) << text;
}

}  // namespace
}  // namespace tokamak
