#include "run/suspect_checkpoints.h"

#include "checkpoint/checkpoint_folder.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

namespace fs = std::filesystem;

class SuspectCheckpoints : public testing::Test {
 protected:
  void make(std::initializer_list<int64_t> steps) const {
    for (int64_t step : steps) fs::create_directories(checkpoints() / checkpoint_name(step) / "inside");
  }
  fs::path checkpoints() const { return checkpoints_folder(run_.path()); }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> found;
    for (const fs::path& one : list_checkpoints(checkpoints())) found.push_back(step_of_checkpoint(one));
    return found;
  }
  TemporaryFolder run_;
};

TEST_F(SuspectCheckpoints, ThoseBehindTheVerifiedStepAreSetAside) {
  make({50, 100, 150, 180});
  EXPECT_TRUE(set_suspects_aside(run_.path(), 100));
  EXPECT_EQ(steps(), (std::vector<int64_t>{50, 100}));
  EXPECT_TRUE(fs::exists(checkpoints() / "suspect_step_00000150/inside"));
  make({150});
  EXPECT_TRUE(set_suspects_aside(run_.path(), 100));
  EXPECT_EQ(steps(), (std::vector<int64_t>{50, 100}));
}

TEST_F(SuspectCheckpoints, NothingIsChangedWhereNoneWouldBeLeft) {
  make({150});
  EXPECT_FALSE(set_suspects_aside(run_.path(), 100));
  EXPECT_EQ(steps(), (std::vector<int64_t>{150}));
  EXPECT_TRUE(set_suspects_aside(run_.path(), 0));  // the run began at 0
  EXPECT_TRUE(steps().empty());
}

}  // namespace
}  // namespace tokamak
