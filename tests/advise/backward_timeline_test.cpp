#include "advise/backward_timeline.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// A block takes 20 seconds, of which 4 are attention.
BackwardParts parts() {
  return {.down_weight = 2,
          .down_input = 2,
          .up_weight = 2,
          .up_input = 2,
          .projection_weight = 1,
          .projection_input = 1,
          .qkv_weight = 2,
          .qkv_input = 2,
          .attention = 4,
          .norm = 1};
}

BlockLinks with_gradients(double seconds, double share = 1) {
  BlockLinks links;
  for (MatrixLinks& matrix : links.matrices) matrix.in_bucket = seconds, matrix.share = share;
  return links;
}

double exposed(const BackwardTimeline& t) { return t.stream + t.keys + t.gradients; }

TEST(BackwardTimeline, GradientsAreHiddenUntilTheEnd) {
  BackwardTimeline t = backward_timeline(3, parts(), {}, with_gradients(0.5));
  EXPECT_EQ(exposed(t), 0) << "the last norm hides the last one";
  t = backward_timeline(3, parts(), {}, with_gradients(3));
  EXPECT_EQ(t.gradients, 2) << "and does so in part";
  t = backward_timeline(3, parts(), {}, with_gradients(10));
  EXPECT_EQ(t.gradients, 3 * 40 - 3 * 20 + 2) << "more than kernels hide; the first two seconds have none";
}

TEST(BackwardTimeline, WhatIsWaitedForComesAfterTheGradientsBeforeIt) {
  BlockLinks links;
  links.keys = 1;
  EXPECT_EQ(backward_timeline(2, parts(), {}, links).keys, 4) << "gathered and scattered, hidden by nothing";
  links = with_gradients(4, 0.25);  // a bucket is full with queries, keys and values: 16 seconds
  links.keys = 1;
  BackwardTimeline t = backward_timeline(2, parts(), {}, links);
  EXPECT_EQ(t.keys, 4);
  EXPECT_EQ(t.gradients, 16 - 12 + 16 - 1) << "norms, MLP and projection hide 12 of what stands before the keys";
  links.keys = 0;
  EXPECT_EQ(backward_timeline(2, parts(), {}, links).gradients, 16 - 1) << "without keys a whole block hides the first";
}

TEST(BackwardTimeline, ParametersAreWaitedForWhereTheyAreTooLargeToComeAhead) {
  BlockLinks links;
  for (MatrixLinks& matrix : links.matrices) matrix.parameters = matrix.parameter_bytes = 1;
  links.gather_bytes = links.ahead_bytes = 1;
  EXPECT_EQ(backward_timeline(2, parts(), {}, links).gradients, 1) << "of the first that is read";
  links.ahead_bytes = 0.5;
  EXPECT_EQ(backward_timeline(2, parts(), {}, links).gradients, 8);
}

TEST(BackwardTimeline, ParametersOfABucketComeTogether) {
  BlockLinks links;
  for (MatrixLinks& matrix : links.matrices) matrix.parameters = 3, matrix.parameter_bytes = 1;
  links.gather_bytes = links.ahead_bytes = 8;
  EXPECT_EQ(backward_timeline(2, parts(), {}, links).gradients, 24) << "both blocks', before anything is read";
  links.gather_bytes = 4;
  EXPECT_EQ(backward_timeline(2, parts(), {}, links).gradients, 12) << "the second's beside the first";
}

TEST(BackwardTimeline, WhatIsComputedAgainWaitsForItsMatrix) {
  BlockLinks links;
  for (MatrixLinks& matrix : links.matrices) matrix.parameters = 2, matrix.parameter_bytes = 1;
  links.gather_bytes = links.ahead_bytes = 1;
  double kept = backward_timeline(1, parts(), {}, links).gradients;
  EXPECT_EQ(kept, 2) << "the next comes beside two seconds of the product before it, and a product for weights";
  EXPECT_EQ(backward_timeline(1, parts(), {.matmul = 1}, links).gradients, 2 + 1) << "down, beside one second";
}

TEST(BackwardTimeline, EarlyKeysAreHiddenByProductsForWeights) {
  BlockLinks links;
  links.keys = 1;
  links.sends_keys_early = true;
  EXPECT_EQ(exposed(backward_timeline(4, parts(), {}, links)), 0);
  links.keys = 8;
  EXPECT_EQ(backward_timeline(1, parts(), {}, links).keys, 8 - 7);
  links.keys = 10;
  EXPECT_EQ(backward_timeline(2, parts(), {}, links).keys, 2 * (10 - 7) + 1) << "the second block's come at 20";
}

TEST(BackwardTimeline, ProductsForWeightsHideTheStream) {
  BlockLinks links;
  links.stream = 1;
  EXPECT_EQ(backward_timeline(5, parts(), {}, links).stream, 1) << "the first gathering has none";
  links.norm_vectors = 0.25;
  EXPECT_EQ(exposed(backward_timeline(5, parts(), {}, links)), 1);
  links.norm_vectors = 0, links.stream = 3;
  EXPECT_EQ(backward_timeline(5, parts(), {}, links).stream, 5 * 6)
      << "two products a scattering, and none are left for gatherings";
}

TEST(BackwardTimeline, TheStreamIsWaitedForFourTimesInABlockWhereWeightsComeLater) {
  BlockLinks links;
  links.stream = 1;
  links.computes_weights_later = true;
  EXPECT_EQ(backward_timeline(5, parts(), {}, links).stream, 20);
  links.norm_vectors = 0.25;
  BackwardTimeline t = backward_timeline(5, parts(), {}, links);
  EXPECT_EQ(t.stream, 20);
  EXPECT_EQ(t.gradients, 10 * 0.25);
}

TEST(BackwardTimeline, KernelsBesideCollectivesTakeLonger) {
  BlockLinks links = with_gradients(1);
  links.units = 0.2;
  BackwardTimeline t = backward_timeline(1, parts(), {}, links);
  EXPECT_NEAR(t.slowed, 4 * 0.2, 1e-12);
  EXPECT_NEAR(t.gradients, 0, 1e-12);
}

}  // namespace
}  // namespace tokamak
