#include "advise/rough_cost.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "advise/search.h"
#include "config/cluster.h"
#include "config/preset.h"

namespace tokamak {
namespace {

TrainingRequest request_of(const char* model, int64_t gpus, int64_t sequences) {
  TrainingRequest request;
  request.cluster = read_cluster("h200");
  request.gpus = gpus;
  request.sequences = sequences;
  request.run.model.preset = model;
  apply_preset(request.run.model);
  return request;
}

TEST(RoughCosts, AreHardlyMoreThanWhatIsEstimated) {
  TrainingRequest request = request_of("gpt2-124m", 4, 16);
  Platform platform = request.platform(request.cluster.gpu);
  RoughCosts rough(request, platform);
  for (const ParallelLayout& layout : allowed_layouts(request)) {
    Estimate one = estimate(request, layout);
    std::optional<double> seconds = rough.seconds(layout, layout.mesh.context);
    ASSERT_TRUE(seconds) << describe(layout);
    EXPECT_LE(*seconds, 1.05 * one.time.total()) << describe(layout);
    EXPECT_LE(rough.kept_bytes(layout), 1.01 * one.memory.total()) << describe(layout);
    for (int64_t ranks = 0; ranks < layout.mesh.context; ranks = std::max<int64_t>(1, 2 * ranks))
      EXPECT_LE(*rough.seconds(layout, ranks), 1.02 * *seconds) << describe(layout) << " by " << ranks;
  }
}

TEST(RoughCosts, KnowWhatCannotFit) {
  TrainingRequest request = request_of("gpt3-6.7b", 4, 64);
  Platform platform = request.platform(request.cluster.gpu);
  RoughCosts rough(request, platform);
  ParallelLayout layout{.mesh = request.run.mesh, .micro_batch = 1, .micro_batches = 16};
  layout.mesh.data = 4;
  layout.mesh.slots = 1;
  EXPECT_TRUE(rough.seconds(layout, 1));
  layout.micro_batch = 16, layout.micro_batches = 1;
  double much = *rough.seconds(layout, 1);
  request.cluster.gpu.memory_bytes.value *= 4;
  RoughCosts roomy(request, platform);
  EXPECT_LT(*roomy.seconds(layout, 1), much) << "nothing is computed again";
  request.cluster.gpu.memory_bytes.value /= 16;
  RoughCosts narrow(request, platform);
  EXPECT_FALSE(narrow.seconds(layout, 1));
}

}  // namespace
}  // namespace tokamak
