#include "advise/forward_timeline.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

// A kernel takes a second, a gathered matrix as long, and biases nothing.
const ForwardParts kParts{.qkv = 1, .attention = 1, .projection = 1, .up = 1, .down = 1, .norm = 0};

ForwardLinks links(double bucket_bytes, double seconds = 1) {
  ForwardLinks links{.bucket_bytes = bucket_bytes};
  for (size_t i = 0; i < links.parameters.size(); i += 2) links.parameters[i] = {.bytes = 1, .seconds = seconds};
  return links;
}

TEST(ForwardTimeline, OnlyTheFirstBucketIsWaitedForWhereKernelsTakeAsLong) {
  for (int64_t blocks : {1, 3}) EXPECT_DOUBLE_EQ(forward_timeline(blocks, kParts, links(1)).exposed, 1);
  EXPECT_DOUBLE_EQ(forward_timeline(1, kParts, links(4)).exposed, 4) << "a bucket is there when all of it is";
}

// A matrix is asked for where the one before it is read, so it has the time of one product; of attention's projection
// with attention, two.
TEST(ForwardTimeline, ABucketHasTheTimeSinceTheOneBeforeItWasRead) {
  EXPECT_DOUBLE_EQ(forward_timeline(1, kParts, links(1, 1.5)).exposed, 1.5 + 0 + 0.5 + 0.5);
}

TEST(ForwardTimeline, WhatIsTooLargeIsWaitedForWhereItIsRead) {
  ForwardLinks large = links(1);
  large.ahead_bytes = 0.5;
  EXPECT_DOUBLE_EQ(forward_timeline(1, kParts, large).exposed, 4);
}

// A bias that the bucket of its matrix has no room for is a collective of its own, which stands behind the next matrix.
TEST(ForwardTimeline, BiasesThatFillNoBucketCostALatency) {
  ForwardLinks with_biases = links(1, 0);
  with_biases.latency = 1;
  double without = forward_timeline(2, kParts, with_biases).exposed;
  for (size_t i = 1; i < with_biases.parameters.size(); i += 2) with_biases.parameters[i].bytes = 0.01;
  EXPECT_GT(forward_timeline(2, kParts, with_biases).exposed, without);
}

// What a norm hides of a bucket, it does not where the stream behind the bucket comes before the norm.
TEST(ForwardTimeline, TheStreamStandsBehindABucket) {
  ForwardParts parts = kParts;
  parts.norm = 0.5;
  ForwardLinks with_stream = links(1, 1.5);
  double without = forward_timeline(2, parts, with_stream).exposed;
  with_stream.stream = 0.25;
  EXPECT_GT(forward_timeline(2, parts, with_stream).exposed, without);
}

TEST(ForwardTimeline, KernelsBesideCollectivesTakeLonger) {
  ForwardLinks slowed = links(1);
  slowed.units = 0.1;
  EXPECT_EQ(forward_timeline(1, kParts, links(1)).slowed, 0);
  EXPECT_NEAR(forward_timeline(1, kParts, slowed).slowed, 0.1 * 3, 1e-9);
}

}  // namespace
}  // namespace tokamak
