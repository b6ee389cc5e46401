#include "ops/element_place.h"

#include "graph/argument_spec.h"
#include "graph/builder.h"
#include "graph/host_tensor.h"
#include "ops/interpret.h"
#include "tests/support/share_of.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// Whatever the cuts, a share's elements are found where share_of() takes them from.
void expect_places(const Shape& whole, const Mesh& mesh, const std::vector<Cut>& cuts) {
  SCOPED_TRACE(print_cuts(cuts));
  HostTensor indices({DType::kF32, whole});
  for (int64_t i = 0; i < indices.size(); ++i) indices[i] = double(i);
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
    Graph graph;
    GraphBuilder g(graph);
    ValueId rng = g.input("rng", {DType::kI32, {2}});
    std::vector<HostTensor> arguments{HostTensor({DType::kI32, {2}}, {5, 6})};
    std::vector<PlacedCut> numbered;
    for (const Cut& cut : cuts) {
      ValueId coordinate = g.input(coordinate_input(cut.axis), {DType::kI32, {}});
      arguments.push_back(HostTensor({DType::kI32, {}}, {double(mesh.coordinates(rank)[mesh.find(cut.axis)])}));
      numbered.push_back({int(cut.dim),
                          cut.blocks,
                          whole[size_t(cut.dim)] / (cut.blocks * cut.size),
                          cut.mirrored,
                          {cut.axis, cut.size},
                          coordinate});
    }
    Attrs attrs;
    graph.add_result("rng", place_share(g, attrs, rng, part_shape(whole, cuts), numbered));
    ElementPlace place(attrs, interpret(graph, arguments).results[0]);
    HostTensor share = test::share_of(indices, cuts, mesh, rank);
    for (int64_t i = 0; i < share.size(); ++i) ASSERT_EQ(place(i), share[i]) << "element " << i << " of rank " << rank;
  }
}

TEST(ElementPlace, IsWhereTheShareWasTakenFrom) {
  Mesh mesh{{{"data", 2}, {"context", 3}, {"tensor", 2}}};
  expect_places({4, 6, 8}, mesh, {{"data", 2, 0}});
  expect_places({4, 6, 8}, mesh, {{"context", 3, 1}});
  expect_places({4, 6, 8}, mesh, {{"tensor", 2, 2}});
  expect_places({4, 6, 8}, mesh, {{"tensor", 2, 2, 2}});
  expect_places({4, 6, 8}, mesh, {{"tensor", 2, 2}, {"data", 2, 0}, {"context", 3, 1}});
  expect_places({4, 12}, mesh, {{"context", 3, 1}, {"tensor", 2, 1, 3}});
  expect_places({4, 12}, mesh, {{"context", 3, 1, 2}, {"tensor", 2, 1}});
  expect_places({4, 12}, mesh, {{"context", 3, 1, 2, true}});
  expect_places({12, 4}, mesh, {{"context", 3, 0, 4, true}, {"tensor", 2, 1}});
  expect_places({4, 24}, mesh, {{"context", 3, 1, 2, true}, {"tensor", 2, 1, 6}});
  expect_places({4, 24}, mesh, {{"context", 3, 1, 4, true}, {"tensor", 2, 1}});
  expect_places({4, 24}, mesh, {{"data", 2, 1, 6}, {"context", 3, 1}, {"tensor", 2, 1, 12}});
}

TEST(ElementPlace, KeepsRunsWherePiecesAreMultiplesOfThem) {
  std::vector<int32_t> rng(4);
  EXPECT_TRUE(ElementPlace({}, rng).keeps_runs());
  EXPECT_TRUE(ElementPlace({{"place", std::vector<int64_t>{2, 8, 0, 3, 48, 1}}}, rng).keeps_runs());
  EXPECT_FALSE(ElementPlace({{"place", std::vector<int64_t>{2, 8, 0, 3, 20, 0}}}, rng).keeps_runs());
}

}  // namespace
}  // namespace tokamak
