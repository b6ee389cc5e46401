#include "advise/layout_links.h"

#include <gtest/gtest.h>

#include "config/cluster.h"
#include "config/preset.h"
#include "graph/gpu_target.h"

namespace tokamak {
namespace {

// What `see` is told of the links of a layout of GPT-2 1558M.
template <typename See>
void with_links(const ParallelLayout& layout, const See& see) {
  ModelConfig model{.preset = "gpt2-1558m"};
  apply_preset(model);
  ClusterConfig cluster = read_cluster("h200");
  Target target = gpu_target(gpu_rates(cluster.gpu));
  BlockWork block(model, layout, target);
  see(LayoutLinks(model, layout, cluster, target, block));
}

ParallelLayout over_data(int64_t zero, int64_t micro_batches) {
  ParallelLayout layout{.mesh = {.data = 8}, .micro_batches = micro_batches};
  layout.mesh.zero = zero;
  return layout;
}

TEST(LayoutLinks, GradientsAreAddedOnceUnlessARankKeepsAShareOfThem) {
  with_links(over_data(0, 1), [](const LayoutLinks& links) { EXPECT_FALSE(links.adds_once()); });
  with_links(over_data(1, 4), [](const LayoutLinks& links) {
    EXPECT_TRUE(links.adds_once());
    EXPECT_FALSE(links.sends_of_each_run());
  });
  with_links(over_data(2, 4), [](const LayoutLinks& links) {
    EXPECT_FALSE(links.adds_once());
    EXPECT_TRUE(links.scatters());
  });
}

// A gradient that is scattered is sent once, one that all ranks get twice, but for what a scatter reaches of a link.
TEST(LayoutLinks, ScattersSendHalf) {
  double all = 0, scattered = 0;
  ZeroCut cut;
  cut.add({1600, 6400}, over_data(2, 1).mesh);
  with_links(over_data(0, 1), [&](const LayoutLinks& links) { all = links.gradient_seconds(cut, 2); });
  with_links(over_data(2, 1), [&](const LayoutLinks& links) { scattered = links.gradient_seconds(cut, 2); });
  EXPECT_LT(scattered, all);
  EXPECT_GE(scattered, all / 2);
}

TEST(LayoutLinks, ParametersComeAheadInASixteenthOfTheBudget) {
  ParallelLayout layout = over_data(3, 1);
  layout.budget_gib = 0.5;
  with_links(layout, [](const LayoutLinks& links) {
    EXPECT_EQ(links.forward().ahead_bytes, double(32 << 20));
    EXPECT_EQ(links.backward().ahead_bytes, double(32 << 20));
    EXPECT_EQ(links.backward().gather_bytes, double(32 << 20)) << "less than a bucket";
  });
}

// Of 14.6, 4.9, 19.5 and 19.5 MiB in bf16, of 50 MiB a bucket; in f32 a matrix or two, and vectors as there is room.
TEST(LayoutLinks, TensorsFillBucketsInTheirOrder) {
  with_links(over_data(3, 1), [](const LayoutLinks& links) {
    EXPECT_EQ(links.collectives(2).each, 4 + 8);
    EXPECT_NEAR(links.collectives(2).filled, 1.25, 0.25);
    EXPECT_NEAR(links.collectives(4).filled, 3, 0.25);
    EXPECT_DOUBLE_EQ(links.forward().parameters[4].bytes, 2.0 * 1600 * 6400);
    EXPECT_DOUBLE_EQ(links.forward().parameters[5].bytes, 2.0 * 6400);
  });
}

}  // namespace
}  // namespace tokamak
