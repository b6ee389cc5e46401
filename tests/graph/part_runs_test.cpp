#include "graph/part_runs.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

const Mesh kMesh{{{"data", 2}, {"tensor", 2}}};

TEST(PartRuns, OfAWholeTensorAreOneRun) {
  EXPECT_EQ(part_runs({3, 4}, {}, kMesh, {1, 1}), (std::vector<PartRun>{{0, 0, 12}}));
  EXPECT_EQ(part_runs({}, {}, kMesh, {0, 0}), (std::vector<PartRun>{{0, 0, 1}}));
  EXPECT_EQ(part_runs({3, 4}, {{.axis = "data", .size = 2, .term = true}}, kMesh, {1, 1}),
            (std::vector<PartRun>{{0, 0, 12}}));
}

TEST(PartRuns, OfRowsAreOneRunAndOfColumnsOneARow) {
  EXPECT_EQ(part_runs({4, 3}, {{"data", 2, 0, 1}}, kMesh, {1, 0}), (std::vector<PartRun>{{6, 0, 6}}));
  EXPECT_EQ(part_runs({2, 4}, {{"tensor", 2, 1, 1}}, kMesh, {0, 1}), (std::vector<PartRun>{{2, 0, 2}, {6, 2, 2}}));
}

TEST(PartRuns, CutEveryBlock) {
  EXPECT_EQ(part_runs({12}, {{"tensor", 2, 0, 3}}, kMesh, {0, 1}),
            (std::vector<PartRun>{{2, 0, 2}, {6, 2, 2}, {10, 4, 2}}));
}

TEST(PartRuns, TakeEverySecondBlockFromTheOtherEnd) {
  std::vector<Cut> cuts = {{"tensor", 2, 0, 4, true}};
  EXPECT_EQ(part_runs({16}, cuts, kMesh, {0, 0}), (std::vector<PartRun>{{0, 0, 2}, {6, 2, 4}, {14, 6, 2}}));
  EXPECT_EQ(part_runs({16}, cuts, kMesh, {0, 1}), (std::vector<PartRun>{{2, 0, 4}, {10, 4, 4}}));
}

TEST(PartRuns, OfSeveralAxesLieWithinEachOther) {
  std::vector<Cut> cuts = {{"tensor", 2, 0, 1}, {"data", 2, 0, 2}};
  EXPECT_EQ(part_runs({8}, cuts, kMesh, {1, 0}), (std::vector<PartRun>{{2, 0, 2}}));
  EXPECT_EQ(part_runs({8}, cuts, kMesh, {0, 1}), (std::vector<PartRun>{{4, 0, 2}}));
  std::swap(cuts[0], cuts[1]);
  EXPECT_EQ(part_runs({8}, cuts, kMesh, {1, 0}), (std::vector<PartRun>{{2, 0, 2}}))
      << "in whatever order they are told";
}

// Every element is with one rank for each set of ranks that the cuts tell apart, and shares are of the shape they say.
TEST(PartRuns, OfAllRanksCoverTheWhole) {
  Shape whole = {4, 12, 3};
  std::vector<Cut> cuts = {{"tensor", 2, 1, 3}, {"data", 2, 0, 1}};
  std::vector<int> seen(size_t(num_elements(whole)), 0);
  for (int64_t rank = 0; rank < kMesh.num_ranks(); ++rank) {
    int64_t part = 0;
    for (const PartRun& run : part_runs(whole, cuts, kMesh, kMesh.coordinates(rank))) {
      EXPECT_EQ(run.part, part);
      part += run.count;
      for (int64_t i = 0; i < run.count; ++i) ++seen[size_t(run.whole + i)];
    }
    EXPECT_EQ(part, num_elements(part_shape(whole, cuts)));
  }
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

TEST(PartRuns, RefuseWhatDoesNotDivide) {
  EXPECT_THROW(part_runs({5}, {{"data", 2, 0, 1}}, kMesh, {0, 0}), InternalError);
}

TEST(PartRuns, WithoutRowsAddedBehindAllOrBehindEachPart) {
  using Runs = std::vector<PartRun>;
  EXPECT_EQ(without_padding({{6, 0, 6}}, 12, 12, 2), (Runs{{6, 0, 6}}));
  EXPECT_EQ(without_padding({{6, 0, 6}}, 12, 9, 1), (Runs{{6, 0, 3}}));
  EXPECT_EQ(without_padding({{9, 0, 3}}, 12, 9, 1), (Runs{}));
  EXPECT_EQ(without_padding({{0, 0, 6}}, 12, 8, 2), (Runs{{0, 0, 4}}));
  EXPECT_EQ(without_padding({{6, 0, 6}}, 12, 8, 2), (Runs{{4, 0, 4}}));
  EXPECT_EQ(without_padding({{9, 0, 3}}, 12, 8, 2), (Runs{{7, 0, 1}}));
  EXPECT_EQ(without_padding({{0, 0, 12}}, 12, 8, 2), (Runs{{0, 0, 4}, {4, 6, 4}})) << "with a hole in the share";
}

}  // namespace
}  // namespace tokamak
