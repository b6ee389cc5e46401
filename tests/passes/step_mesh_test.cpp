#include "passes/step_mesh.h"

#include "config/mesh_config.h"
#include "tests/support/expect_error.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(StepMesh, HasTheTensorAxisLast) {
  Mesh mesh = step_mesh({.data = 2, .context = 3, .tensor = 4});
  EXPECT_EQ(mesh, (Mesh{{{"pipe", 1}, {"data", 2}, {"context", 3}, {"tensor", 4}}}));
}

TEST(StepMesh, IsOneRankWhereNobodySaysMore) { EXPECT_EQ(step_mesh({}).num_ranks(), 1); }

TEST(StepMesh, GivesDataWhatTheOthersLeave) {
  EXPECT_EQ(step_mesh({.tensor = 2}, 8).size("data"), 4);
  EXPECT_EQ(step_mesh({.tensor = 2}).size("data"), 1);
  EXPECT_EQ(step_mesh({.data = 4, .tensor = 2}, 8).num_ranks(), 8);
}

TEST(StepMesh, RefusesAWorldOfAnotherSize) {
  expect_user_error([] { step_mesh({.data = 2, .tensor = 2}, 8); },
                    {"[mesh] expected pipe x data x context x tensor to be the 8 ranks of this run, got 1 x 2 x 1 x 2",
                     "with mesh.data=0 they fit"});
  expect_user_error([] { step_mesh({.tensor = 3}, 8); }, {"change an axis or the number of ranks"});
}

}  // namespace
}  // namespace tokamak
