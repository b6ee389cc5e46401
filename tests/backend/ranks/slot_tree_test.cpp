#include "backend/slot_tree.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace tokamak {
namespace {

TEST(SlotTree, SlotsOfRanksFillTheFewestSubtrees) {
  EXPECT_EQ((SlotTree{8, 1}.parts(0)), (std::vector<Subtree>{{0, 3}}));
  EXPECT_EQ((SlotTree{8, 4}.parts(3)), (std::vector<Subtree>{{6, 1}}));
  EXPECT_EQ((SlotTree{8, 3}.parts(0)), (std::vector<Subtree>{{0, 1}}));
  EXPECT_EQ((SlotTree{8, 3}.parts(1)), (std::vector<Subtree>{{2, 1}, {4, 0}}));
  EXPECT_EQ((SlotTree{8, 3}.parts(2)), (std::vector<Subtree>{{5, 0}, {6, 1}}));
  EXPECT_EQ((SlotTree{8, 3}.max_parts()), 2);
  EXPECT_EQ((SlotTree{16, 1}.max_parts()), 1);
}

// Written as text, the sum of all ranks' parts is the same tree whatever their number.
std::string summed(const SlotTree& tree) {
  std::vector<std::string> texts;
  std::vector<TreePiece> pieces;
  auto text_of = [](const auto& self, int first, int level) -> std::string {
    if (level == 0) return std::to_string(first);
    return fmt::format("({}+{})", self(self, first, level - 1), self(self, first + (1 << (level - 1)), level - 1));
  };
  for (int rank = 0; rank < tree.ranks; ++rank)
    for (const Subtree& part : tree.parts(rank)) {
      texts.push_back(text_of(text_of, part.first, part.level));
      pieces.push_back({nullptr, part.level});
    }
  std::vector<std::string> stack;
  fold_tree(
      pieces, [&](size_t i) { stack.push_back(texts[i]); },
      [&] {
        std::string upper = stack.back();
        stack.pop_back();
        stack.back() = fmt::format("({}+{})", stack.back(), upper);
      });
  EXPECT_EQ(stack.size(), 1u);
  return stack[0];
}

TEST(SlotTree, IsOneOrderOnAnyNumberOfRanks) {
  for (int slots : {1, 2, 4, 8, 16, 32})
    for (int ranks = 1; ranks <= slots; ++ranks) EXPECT_EQ(summed({slots, ranks}), summed({slots, 1}));
  EXPECT_EQ(summed({4, 3}), "((0+1)+(2+3))");
}

}  // namespace
}  // namespace tokamak
