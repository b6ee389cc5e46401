#include "advise/megatron.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/cluster.h"

namespace tokamak {
namespace {

TEST(Megatron, TheRowsAreThoseOfThePaper) {
  ASSERT_EQ(megatron_rows().size(), 10u);
  int calibrating = 0;
  for (const MegatronRow& row : megatron_rows()) {
    // Equation 2 of the paper gives the first column, rounded to a tenth.
    auto l = double(row.layers), h = double(row.width);
    double parameters = 12 * l * h * h * (1 + 13 / (12 * h) + (51200 + 2048) / (12 * l * h));
    EXPECT_NEAR(parameters * 1e-9, row.billions, 0.051 + 1e-4 * row.billions) << row.billions;
    EXPECT_EQ(row.data() * row.tensor * row.pipe, row.gpus);
    EXPECT_EQ(row.batch % row.data(), 0);
    calibrating += row.calibrates;
  }
  EXPECT_LE(calibrating, 2);
}

TEST(Megatron, EveryRowIsPredictedWithinTenPercent) {
  ClusterConfig cluster = read_cluster("dgx-a100");
  for (const MegatronRow& row : megatron_rows()) {
    MegatronStep step = predict_megatron(row, cluster);
    EXPECT_LT(std::abs(step.error(row)), 0.1) << row.billions << "B: " << step.tera(row) << " for " << row.tera;
    EXPECT_EQ(row.batch / row.data() % step.micro_batch, 0);
    EXPECT_EQ(row.layers / row.pipe % step.chunks, 0);
  }
}

TEST(Megatron, SlowerLinksShowWhereTheyAreUsed) {
  ClusterConfig cluster = read_cluster("dgx-a100"), slow = cluster;
  slow.within.bandwidth.value /= 2;
  const MegatronRow &alone = megatron_rows()[0], &divided = megatron_rows()[3];
  EXPECT_EQ(predict_megatron(alone, slow).tensor, 0);
  EXPECT_NEAR(predict_megatron(divided, slow).tensor / predict_megatron(divided, cluster).tensor, 2, 0.3);
}

}  // namespace
}  // namespace tokamak
