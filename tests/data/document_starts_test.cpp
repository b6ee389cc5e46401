#include "data/document_starts.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

using Ids = std::vector<int32_t>;
constexpr int32_t kEnd = 9;

TEST(DocumentStarts, ASeparatorEndsItsDocument) {
  EXPECT_EQ(document_starts(Ids{1, 2, 9, 3, 4, 9, 5}, 7, kEnd), (Ids{0, 0, 0, 3, 3, 3, 6}));
}

TEST(DocumentStarts, OneDocumentBeginsAtZero) {
  EXPECT_EQ(document_starts(Ids{1, 2, 3}, 3, kEnd), (Ids{0, 0, 0}));
  EXPECT_EQ(document_starts(Ids{1, 2, 9}, 3, kEnd), (Ids{0, 0, 0}));
}

TEST(DocumentStarts, SeparatorsInARowAreDocumentsOfTheirOwn) {
  EXPECT_EQ(document_starts(Ids{9, 9, 1, 9}, 4, kEnd), (Ids{0, 1, 2, 2}));
}

TEST(DocumentStarts, EverySampleCountsFromZero) {
  EXPECT_EQ(document_starts(Ids{1, 9, 2, 3, 4, 9, 9, 5, 6}, 3, kEnd), (Ids{0, 0, 2, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(document_starts(Ids{9, 9}, 1, kEnd), (Ids{0, 0}));
  EXPECT_EQ(document_starts(Ids{}, 4, kEnd), Ids{});
}

TEST(DocumentStarts, TokensMustBeWholeSamples) { EXPECT_ANY_THROW(document_starts(Ids{1, 2, 3}, 2, kEnd)); }

TEST(DocumentStarts, CutWindowsAreShorterSamples) {
  Ids tokens{1, 2, 9, 3, 4, 5, 6, 9, 7, 8, 1, 2, 3, 4, 9, 9};
  for (int64_t length : {1, 2, 4, 8}) {
    Ids starts = document_starts(tokens, 8, kEnd);
    cut_starts(starts, 8, length);
    EXPECT_EQ(starts, document_starts(tokens, length, kEnd)) << length;
  }
}

// The last separator of a sample hides the first token of the next document as well, though that is not in the sample.
TEST(HideFirstTokens, LeavesOutWhatFollowsASeparator) {
  Ids tokens{1, 9, 2, 3, 9}, targets{9, 2, 3, 9, 7};
  hide_first_tokens(tokens, kEnd, targets);
  EXPECT_EQ(targets, (Ids{9, kNoTarget, 3, 9, kNoTarget}));
  EXPECT_EQ(count_targets(targets), 3);
}

TEST(CountTargets, CountsNoneAndAll) {
  EXPECT_EQ(count_targets(Ids{}), 0);
  EXPECT_EQ(count_targets(Ids{-1, -1}), 0);
  EXPECT_EQ(count_targets(Ids{0, 5}), 2);
}

}  // namespace
}  // namespace tokamak
