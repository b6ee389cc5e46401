#include "advise/nearest.h"

#include <gtest/gtest.h>

#include "tests/advise/request_of.h"

namespace tokamak {
namespace {

TEST(Nearest, IsAnotherLayoutThenMoreGpus) {
  TrainingRequest request = request_of("gpt3-13b", "h200", 4);
  request.allows = [](const ParallelLayout& layout) { return layout.mesh.data == 4 && layout.mesh.zero == 0; };
  ASSERT_TRUE(search_layouts(request).empty());
  std::optional<Nearest> nearest = find_nearest(request);
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->gpus, 4);
  EXPECT_TRUE(nearest->cluster.empty());
  nearest = find_nearest(request_of("gpt3-175b", "dgx-a100", 8));
  ASSERT_TRUE(nearest);
  EXPECT_GT(nearest->gpus, 8);
  EXPECT_TRUE(search_layouts(request_of("gpt3-175b", "dgx-a100", nearest->gpus / 2)).empty());
}

TEST(Nearest, IsOnAnotherClusterWhereTheOwnIsTooSmall) {
  std::optional<Nearest> nearest = find_nearest(request_of("gpt3-6.7b", "rtx-4090", 1));
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->cluster, "h200");
  EXPECT_EQ(nearest->gpus, 1);
  EXPECT_TRUE(fits(nearest->layout, read_cluster("h200")));
}

TEST(Nearest, IsNotWhatWasPassedOver) {
  TrainingRequest request = request_of("gpt2-124m", "h200", 1);
  request.sequences = 4;
  std::optional<Nearest> first = find_nearest(request);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->gpus, 1);
  std::optional<Nearest> second = find_nearest(request, {first->layout.layout});
  ASSERT_TRUE(second);
  EXPECT_NE(describe(second->layout.layout), describe(first->layout.layout));
}

}  // namespace
}  // namespace tokamak
