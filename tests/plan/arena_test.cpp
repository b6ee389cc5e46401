#include "plan/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tokamak {
namespace {

Block block(int64_t bytes, int first, int last) { return {-1, bytes, first, last, {}}; }

void expect_apart(const std::vector<Block>& blocks, int64_t arena) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_GE(blocks[i].offset, 0);
    EXPECT_EQ(blocks[i].offset % kArenaAlignment, 0);
    EXPECT_LE(blocks[i].offset + blocks[i].bytes, arena);
    for (size_t j = 0; j < i; ++j) {
      const Block &a = blocks[i], &b = blocks[j];
      bool same_time = a.first <= b.last && b.first <= a.last;
      bool same_bytes = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      ASSERT_FALSE(same_time && same_bytes) << "blocks " << j << " and " << i;
    }
  }
}

TEST(Arena, DeadBlocksGiveTheirPlace) {
  std::vector<Block> blocks{block(100, 0, 1), block(100, 2, 3)};
  EXPECT_EQ(place_blocks(blocks), 128);
  EXPECT_EQ(blocks[0].offset, blocks[1].offset);
}

TEST(Arena, TouchingLifetimesStayApart) {
  std::vector<Block> blocks{block(64, 0, 1), block(64, 1, 2)};
  EXPECT_EQ(place_blocks(blocks), 128);
}

// Copies of one stream follow each other; what others make has their place when the stream is done with them.
TEST(Arena, ACopyOfAStreamIsHeldForOthersAlone) {
  Block first = block(64, 0, 1), next = block(64, 2, 3), other = block(64, 2, 3), later = block(64, 6, 7);
  first.held = next.held = 5;
  std::vector<Block> copies{first, next};
  EXPECT_EQ(place_blocks(copies), 64);
  std::vector<Block> blocks{first, other, later};
  EXPECT_EQ(place_blocks(blocks), 128);
  EXPECT_NE(blocks[0].offset, blocks[1].offset);
}

TEST(Arena, LiveBytesAtEveryNode) {
  EXPECT_EQ(live_bytes({block(64, 0, 1), block(65, 1, 3)}, 3), (std::vector<int64_t>{64, 192, 128, 128}));
}

TEST(Arena, Empty) {
  std::vector<Block> blocks;
  EXPECT_EQ(place_blocks(blocks), 0);
}

TEST(Arena, RandomLifetimes) {
  double worst = 1, sum = 0;
  constexpr int kRuns = 300;
  for (uint32_t seed = 0; seed < kRuns; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    std::vector<Block> blocks;
    int end = 0;
    for (int i = 0; i < 60; ++i) {
      int first = below(50), last = first + below(12);
      end = std::max(end, last);
      blocks.push_back(block(1 + below(2000), first, last));
    }
    int64_t arena = place_blocks(blocks);
    expect_apart(blocks, arena);
    if (HasFatalFailure()) return;
    std::vector<int64_t> live = live_bytes(blocks, end);
    int64_t bound = *std::max_element(live.begin(), live.end());
    ASSERT_GE(arena, bound);
    worst = std::max(worst, double(arena) / double(bound));
    sum += double(arena) / double(bound);
  }
  EXPECT_LT(worst, 1.3);
  EXPECT_LT(sum / kRuns, 1.08);
}

// Of blocks of one size, placed in the order in which they are defined, each fits where another one has ended.
TEST(Arena, EqualSizesReachTheBound) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    std::vector<Block> blocks;
    for (int i = 0; i < 60; ++i) {
      int first = below(50);
      blocks.push_back(block(640, first, first + below(12)));
    }
    std::vector<int64_t> live = live_bytes(blocks, 62);
    EXPECT_EQ(place_blocks(blocks), *std::max_element(live.begin(), live.end())) << seed;
  }
}

// One activation a layer, alive from forward to backward, with temporaries between: the shape of a training step.
TEST(Arena, TrainingStepReachesTheBound) {
  std::vector<Block> blocks;
  constexpr int kLayers = 12;
  for (int l = 0; l < kLayers; ++l) {
    blocks.push_back(block(6400, 2 * l, 4 * kLayers - 2 * l));
    blocks.push_back(block(12800, 2 * l, 2 * l + 1));
    blocks.push_back(block(12800, 4 * kLayers - 2 * l - 1, 4 * kLayers - 2 * l));
  }
  std::vector<int64_t> live = live_bytes(blocks, 4 * kLayers);
  EXPECT_EQ(place_blocks(blocks), *std::max_element(live.begin(), live.end()));
}

}  // namespace
}  // namespace tokamak
