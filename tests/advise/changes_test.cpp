#include "advise/changes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/advise/request_of.h"

namespace tokamak {
namespace {

TEST(Changes, SlowLinksAreNamedAsTheLimit) {
  TrainingRequest request = request_of("gpt3-6.7b", "h200", 4);
  std::vector<Estimate> found = search_layouts(request);
  EXPECT_EQ(limit_of(cluster_changes(request, found), found[0]).find("limited by matrix products"), 0u);
  request.cluster.within.bandwidth.value = 1e9;
  request.allows = [](const ParallelLayout& layout) { return layout.mesh.data == 4; };  // a pipeline sends little
  found = search_layouts(request);
  EXPECT_EQ(limit_of(cluster_changes(request, found), found[0]).find("limited by links"), 0u);
}

TEST(Changes, ChangesGoBothWays) {
  TrainingRequest request = request_of("gpt2-1558m", "h200", 4);
  std::vector<Estimate> found = search_layouts(request);
  for (const Change& change : cluster_changes(request, found)) {
    bool is_more = change.what.starts_with("twice"), is_less = change.what.starts_with("half") && change.is_possible;
    EXPECT_FALSE((is_more && change.gain < -1e-9) || (is_less && change.gain > 1e-9)) << change.what << change.gain;
  }
  for (const Change& change : layout_changes(request, found[0], found))
    EXPECT_FALSE(change.is_possible && change.gain > 0.005) << change.what;  // else it would have been found
}

TEST(Changes, ChangesOfTheLayoutNameEachAxis) {
  TrainingRequest request = request_of("gpt2-1558m", "h200", 4);
  Estimate best = search_layouts(request)[0];
  ASSERT_EQ(best.layout.mesh.data, 4) << describe(best.layout);
  std::vector<Change> changes = layout_changes(request, best, {});
  auto has = [&](const char* what) {
    return std::any_of(changes.begin(), changes.end(), [&](const Change& change) { return change.what == what; });
  };
  EXPECT_TRUE(has("pipe 2"));
  EXPECT_TRUE(has("context 2"));
  EXPECT_TRUE(has("tensor 2")) << "of 25 heads, to which one is added";
  EXPECT_FALSE(has("pipe 0"));
  EXPECT_FALSE(has("schedule 1f1b"));
}

TEST(Changes, ChangesOfAPipelineNameItsSchedules) {
  TrainingRequest request = request_of("gpt3-13b", "dgx-a100", 16);
  request.allows = [](const ParallelLayout& layout) { return layout.mesh.pipe == 4; };
  Estimate best = search_layouts(request)[0];
  int schedules = 0;
  for (const Change& change : layout_changes(request, best, {})) {
    if (!change.what.starts_with("schedule ")) continue;
    EXPECT_NE(change.what, "schedule " + best.layout.mesh.schedule);
    EXPECT_LE(change.gain, 0) << change.what;
    ++schedules;
  }
  EXPECT_EQ(schedules, 2);
}

// Half as many micro-batches as stages have no such schedule.
TEST(Changes, ChangesOfAnInterleavedPipelineKeepAMultipleOfItsStages) {
  TrainingRequest request = request_of("gpt2-1558m", "dgx-a100", 8);
  request.sequences = 8;
  ParallelLayout layout{.micro_batch = 1, .micro_batches = 4};
  layout.mesh.pipe = 4, layout.mesh.data = 2, layout.mesh.interleave = 2, layout.mesh.schedule = "interleaved";
  auto micro_batches = [&] {
    int number = 0;
    for (const Change& change : layout_changes(request, estimate(request, layout), {}))
      number += change.what.starts_with("micro-batch ");
    return number;
  };
  EXPECT_EQ(micro_batches(), 0);
  request.sequences = 16, layout.micro_batches = 8;
  EXPECT_EQ(micro_batches(), 1);
}

}  // namespace
}  // namespace tokamak
