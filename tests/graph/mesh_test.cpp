#include "graph/mesh.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

const Mesh kMesh{{{"data", 2}, {"context", 1}, {"tensor", 3}}};

TEST(Mesh, CountsItsRanks) {
  EXPECT_EQ(kMesh.num_ranks(), 6);
  EXPECT_EQ(Mesh{}.num_ranks(), 1);
  EXPECT_EQ(kMesh.size("tensor"), 3);
  EXPECT_EQ(kMesh.size("pipe"), 1);
  EXPECT_EQ(kMesh.find("tensor"), 2u);
  EXPECT_THROW(kMesh.find("pipe"), InternalError);
}

TEST(Mesh, GivesEveryRankItsCoordinatesTheLastAxisFastest) {
  EXPECT_EQ(kMesh.coordinates(0), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(kMesh.coordinates(1), (std::vector<int64_t>{0, 0, 1}));
  EXPECT_EQ(kMesh.coordinates(5), (std::vector<int64_t>{1, 0, 2}));
  for (int64_t rank = 0; rank < kMesh.num_ranks(); ++rank) EXPECT_EQ(kMesh.rank(kMesh.coordinates(rank)), rank);
}

TEST(Mesh, IsPrintedWithoutAxesOfOneRank) {
  EXPECT_EQ(to_string(kMesh), "data 2 x tensor 3");
  EXPECT_EQ(to_string(Mesh{}), "one rank");
}

TEST(Mesh, GroupsTheRanksAlongAnAxis) {
  EXPECT_EQ(kMesh.group(4, "tensor"), (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(kMesh.group(4, "data"), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(kMesh.group(4, "context"), (std::vector<int64_t>{4}));
}

}  // namespace
}  // namespace tokamak
