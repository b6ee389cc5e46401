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
    std::optional<double> seconds = rough.seconds(layout);
    ASSERT_TRUE(seconds) << describe(layout);
    EXPECT_LE(*seconds, 1.07 * one.time.total()) << describe(layout);
    EXPECT_LE(rough.kept_bytes(layout), 1.01 * one.memory.total()) << describe(layout);
    for (RoughBlocks blocks; !blocks.are_those_of(layout); blocks = blocks.closer_to(layout))
      EXPECT_LE(*rough.seconds(layout, blocks), 1.02 * *seconds) << describe(layout) << " by " << blocks.context_ranks;
  }
}

TEST(RoughCosts, KnowWhatCannotFit) {
  TrainingRequest request = request_of("gpt3-6.7b", 4, 64);
  Platform platform = request.platform(request.cluster.gpu);
  RoughCosts rough(request, platform);
  ParallelLayout layout{.mesh = request.run.mesh, .micro_batch = 1, .micro_batches = 16};
  layout.mesh.data = 4;
  layout.mesh.slots = 1;
  EXPECT_TRUE(rough.seconds(layout));
  layout.micro_batch = 16, layout.micro_batches = 1;
  double much = *rough.seconds(layout);
  request.cluster.gpu.memory_bytes.value *= 4;
  RoughCosts roomy(request, platform);
  EXPECT_LT(*roomy.seconds(layout), much) << "nothing is computed again";
  request.cluster.gpu.memory_bytes.value /= 16;
  RoughCosts narrow(request, platform);
  EXPECT_FALSE(narrow.seconds(layout));
}

}  // namespace
}  // namespace tokamak
