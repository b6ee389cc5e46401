#include "plan/neighbours.h"

#include "base/divide.h"
#include "plan/arena.h"
#include "tests/support/graph_text.h"

#include <gtest/gtest.h>

#include <random>

namespace tokamak {
namespace {

// Three gradients, made in another order than they are sent in; the argument has no block.
const Graph& step() {
  static const Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[100]
    input y = %1 : f32[33]
    %2 = exp(%1) : f32[33]
    %3 = exp(%0) : f32[100]
    %4 = exp(%3) : f32[100]
    %5, %6, %7, %8 = all_reduce(%3, %0, %2, %4) {axis="data", reduction="sum", size=2} : f32[100], f32[100], f32[33], f32[100]
    %9 = add(%5, %8) : f32[100]
    %10 = add(%9, %6) : f32[100]
    result a = %10
    result b = %7
  })");
  return graph;
}

TEST(Neighbours, OperandsAndResultsOfACollectiveLieSideBySide) {
  Plan plan = make_plan(step(), Target());
  auto offset = [&](ValueId value) { return plan.locations[size_t(value)].offset; };
  EXPECT_EQ(offset(2) - offset(3), 448);  // 400 bytes, aligned
  EXPECT_EQ(offset(4) - offset(2), 192);  // 132
  EXPECT_EQ(offset(6) - offset(5), 448);
  EXPECT_EQ(offset(7) - offset(6), 448);
  EXPECT_EQ(offset(8) - offset(7), 192);
}

TEST(Neighbours, ABlockIsInOneRow) {
  Graph graph = test::parse(R"(graph g {
    input x = %0 : f32[4]
    %1 = exp(%0) : f32[4]
    %2 = neg(%0) : f32[4]
    %3, %4 = all_reduce(%1, %2) {axis="data", reduction="sum", size=2} : f32[4], f32[4]
    %5, %6 = all_reduce(%3, %1) {axis="data", reduction="sum", size=2} : f32[4], f32[4]
    result a = %4
    result b = %5
    result c = %6
  })");
  Plan plan = make_plan(graph, Target());
  StorageMap storage = map_storage(graph, assign_streams(graph, plan.launches, {}));
  std::vector<int> seen(storage.blocks.size(), 0);
  for (const std::vector<int>& row : find_neighbours(graph, storage)) {
    EXPECT_EQ(row.size(), 2u);
    for (int block : row) EXPECT_EQ(seen[size_t(block)]++, 0);
  }
}

TEST(Neighbours, BlocksThatAreAliveTogetherAreApart) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    std::vector<Block> blocks;
    for (int i = 0; i < 40; ++i) {
      int first = below(50);
      blocks.push_back({.bytes = 1 + below(2000), .first = first, .last = first + below(12)});
    }
    std::vector<std::vector<int>> rows(4);
    for (int i = 0; i < 20; ++i) rows[size_t(below(4))].push_back(2 * i);
    std::erase_if(rows, [](const auto& row) { return row.size() < 2; });
    std::vector<Block> placed = blocks;
    int64_t arena = place_blocks_side_by_side(placed, rows);
    for (const std::vector<int>& row : rows)
      for (size_t i = 1; i < row.size(); ++i) {
        const Block &before = placed[size_t(row[i - 1])], &block = placed[size_t(row[i])];
        EXPECT_EQ(block.offset, before.offset + round_up(before.bytes, kArenaAlignment)) << seed;
      }
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_LE(placed[i].offset + placed[i].bytes, arena);
      EXPECT_TRUE(placed[i].first <= blocks[i].first && placed[i].last >= blocks[i].last);
      for (size_t j = 0; j < i; ++j) {
        const Block &a = blocks[i], &b = blocks[j];
        bool together = a.first <= b.last && b.first <= a.last;
        bool apart = placed[i].offset + a.bytes <= placed[j].offset || placed[j].offset + b.bytes <= placed[i].offset;
        EXPECT_TRUE(!together || apart) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace tokamak
