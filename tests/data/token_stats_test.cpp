#include "data/token_stats.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tokamak {
namespace {

using Tokens = std::vector<int32_t>;

void expect_same(const TokenStats& a, const TokenStats& b) {
  EXPECT_EQ(a.tokens(), b.tokens());
  EXPECT_EQ(a.least(), b.least());
  EXPECT_EQ(a.most(), b.most());
  EXPECT_EQ(a.separators(), b.separators());
  EXPECT_EQ(a.lengths().counts, b.lengths().counts);
  EXPECT_EQ(a.lengths().documents, b.lengths().documents);
  EXPECT_EQ(a.lengths().longest, b.lengths().longest);
}

TEST(TokenStats, CountsDocumentsBetweenSeparators) {
  TokenStats stats(9);
  stats.add(Tokens{9, 1, 2, 3, 9, 9, 4, 9, 5, 6});  // lengths 3, 1 and 2; empty ones do not count
  EXPECT_EQ(stats.tokens(), 10);
  EXPECT_EQ(stats.least(), 1);
  EXPECT_EQ(stats.most(), 9);
  EXPECT_EQ(stats.separators(), 4);
  LengthHistogram lengths = stats.lengths();
  EXPECT_EQ(lengths.documents, 3);
  EXPECT_EQ(lengths.longest, 3);
  EXPECT_EQ(lengths.counts[0], 1);  // 1
  EXPECT_EQ(lengths.counts[1], 2);  // 2 and 3
}

TEST(TokenStats, PiecesJoinToTheWhole) {
  Tokens tokens = {1, 9, 2, 3, 9, 9, 4, 5, 6, 7, 8, 9, 1};
  TokenStats whole(9);
  whole.add(tokens);
  std::span<const int32_t> all = tokens;
  for (size_t a = 0; a <= all.size(); ++a) {
    for (size_t b = a; b <= all.size(); ++b) {
      TokenStats pieces[3] = {TokenStats(9), TokenStats(9), TokenStats(9)};
      pieces[0].add(all.first(a));
      pieces[1].add(all.subspan(a, b - a));
      pieces[2].add(all.subspan(b));
      TokenStats joined = pieces[0];
      joined.append(pieces[1]);
      joined.append(pieces[2]);
      expect_same(joined, whole);
      TokenStats added(9);
      added.add(all.first(a));
      added.add(all.subspan(a, b - a));
      added.add(all.subspan(b));
      expect_same(added, whole);
    }
  }
}

TEST(TokenStats, OfNothingIsNothing) {
  TokenStats stats(9);
  EXPECT_EQ(stats.least(), 0);
  EXPECT_EQ(stats.most(), 0);
  EXPECT_EQ(stats.lengths().documents, 0);
  TokenStats unknown;
  unknown.add(Tokens{1, 2});
  EXPECT_EQ(unknown.lengths().documents, 0);
}

}  // namespace
}  // namespace tokamak
