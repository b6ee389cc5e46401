#include "run/slot_check.h"

#include "tests/support/expect_error.h"
#include "tests/support/resolve_first.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <set>

namespace tokamak {
namespace {

using Names = std::vector<std::string>;

TEST(SlotCheck, AllOthersComputeAllSlotsInTurn) {
  constexpr int64_t kRanks = 4, kRuns = 2;
  std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
  for (int64_t number = 0; number < kRuns * (kRanks - 1); ++number)
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      SlotTurn turn = slot_turn(number, rank, kRanks, kRuns);
      EXPECT_NE(turn.of_rank, rank);
      seen.insert({rank, turn.of_rank, turn.run});
    }
  EXPECT_EQ(seen.size(), size_t(kRanks * (kRanks - 1) * kRuns));
}

std::vector<SlotDigests> three() {
  return {{"rank 0 on a", 1, {1, 2}, {3, 4}, {7, 8}},
          {"rank 1 on b", 2, {3, 4}, {5, 6}, {7, 8}},
          {"rank 2 on c", 0, {5, 6}, {1, 2}, {7, 8}}};
}
const Names kGradients = {"grad.w", "grad.b"}, kKept = {"w", "adam.m.w"};

TEST(SlotCheck, EqualBitsAreNoCorruption) { EXPECT_EQ(describe_corruption(three(), kGradients, kKept, 10), ""); }

TEST(SlotCheck, OtherGradientsNameBothRanksAndTheTensor) {
  std::vector<SlotDigests> all = three();
  all[1].again[1] ^= 1;
  EXPECT_EQ(describe_corruption(all, kGradients, kKept, 10),
            "in step 10 rank 1 on b computed a slot of rank 2 on c again and got other bits of grad.b; one of the two "
            "is wrong");
}

TEST(SlotCheck, ARankThatKeepsOtherBitsThanMostIsNamed) {
  for (size_t wrong : {0, 1, 2}) {
    std::vector<SlotDigests> all = three();
    all[wrong].kept[1] ^= 1;
    std::string text = describe_corruption(all, kGradients, kKept, 10);
    EXPECT_TRUE(text.starts_with("after step 10 " + all[wrong].rank + " has other bits than rank ")) << text;
    EXPECT_TRUE(text.ends_with(" of adam.m.w")) << text;
  }
}

TEST(SlotCheck, OfTwoRanksNobodyKnowsWhichIsWrong) {
  std::vector<SlotDigests> two = {{"rank 0 on a", 1, {1}, {2}, {7}}, {"rank 1 on b", 0, {2}, {1}, {6}}};
  EXPECT_EQ(describe_corruption(two, {"grad.w"}, {"w"}, 3),
            "after step 3 rank 1 on b has other bits than rank 0 on a of w, one of the two wrongly");
}

TEST(SlotCheck, NeedsSlotsToCompareAndACheckpointToGoBackTo) {
  RunConfig config;
  config.model = {.layers = 1, .heads = 2, .width = 16, .context = 16, .vocab = 61};
  config.train.batch = 8;
  config.train.checkpoint_every = config.train.verify_every = 10;
  config.train.keep_checkpoints = 2;
  config.mesh.data = 2;
  config.mesh.slots = 4;
  auto check = [](const RunConfig& run) { require_checkable(resolve(run, {})); };
  EXPECT_NO_THROW(check(config));
  auto refused = [&](auto change) {
    RunConfig other = config;
    change(other);
    EXPECT_THROW(check(other), UserError);
    other.train.verify_every = 0;
    EXPECT_NO_THROW(check(other));
  };
  refused([](RunConfig& run) { run.mesh.slots = 2; });
  refused([](RunConfig& run) { run.mesh.data = 1; });
  refused([](RunConfig& run) { run.mesh.zero = 2; });
  refused([](RunConfig& run) { run.train.ramp = {"5: total_batch=64"}; });
  refused([](RunConfig& run) { run.train.verify_every = 15; });
  refused([](RunConfig& run) { run.train.verify_every = 20; });
  refused([](RunConfig& run) { run.train.checkpoint_every = 0; });
}

}  // namespace
}  // namespace tokamak
