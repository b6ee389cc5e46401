#include "advise/recompute_curve.h"

#include "advise/compose.h"

#include <gtest/gtest.h>

#include <set>

namespace tokamak {
namespace {

// The second kind takes more than it frees, until the third follows.
const RecomputeCurve kCurve({{1, 0}, {0.6, 0.05}, {0.64, 0.1}, {0.3, 0.2}});

TEST(RecomputeCurve, TellsTheFewestKinds) {
  EXPECT_EQ(kCurve.kinds(1.5), 0);
  EXPECT_EQ(kCurve.kinds(0.7), 1);
  EXPECT_EQ(kCurve.kinds(0.5), 3);
  EXPECT_EQ(kCurve.kinds(0.2), std::nullopt);
}

TEST(RecomputeCurve, TellsTimeBetweenKinds) {
  EXPECT_EQ(kCurve.time(1), 0);
  EXPECT_DOUBLE_EQ(*kCurve.time(0.8), 0.025);
  EXPECT_DOUBLE_EQ(*kCurve.time(0.45), 0.05 + 0.5 * 0.15) << "the second kind is on no way";
  EXPECT_EQ(kCurve.time(0.2), std::nullopt);
}

TEST(RecomputeCurve, KnowsWhereAKindFreesNothing) {
  EXPECT_FALSE(kCurve.is_flat_before(1));
  EXPECT_TRUE(kCurve.is_flat_before(2));
  EXPECT_FALSE(kCurve.is_flat_before(3));
}

// What so many kinds need of memory, and which were asked.
struct Needed {
  std::vector<double> bytes;
  std::set<int64_t> asked = {};
  double operator()(int64_t kinds) {
    asked.insert(kinds);
    return bytes[size_t(std::min<int64_t>(kinds, int64_t(bytes.size()) - 1))];
  }
};

// Whatever the curve expects, right or wrong or nothing at all.
TEST(LeastRecomputed, IsTheSameWhereverTheSearchBegins) {
  const std::vector<double> bytes = {100, 80, 61, 45, 30, 20, 12};
  const std::vector<RecomputeCurve> curves = {
      RecomputeCurve(), RecomputeCurve({{1, 0}, {0.05, 1}}),
      RecomputeCurve({{1, 0}, {0.9, 0}, {0.8, 0}, {0.7, 0}, {0.6, 0}, {0.5, 0}, {0.1, 0}}),
      RecomputeCurve({{1, 0}, {0.99, 0}})};
  for (double budget : {90.0, 70.0, 45.0, 12.0, 11.0})
    for (const RecomputeCurve& curve : curves) {
      Needed needed{bytes};
      Recomputed found = least_recomputed(budget, std::ref(needed), curve);
      int64_t enough = 1;
      while (enough < 16 && needed(enough) > budget) ++enough;
      EXPECT_EQ(found.more, enough) << budget;
      EXPECT_EQ(found.kinds, enough == 16 ? 16 : enough - 1) << budget;
    }
}

// A kind that takes more memory than it frees, until the next one follows, is no beginning.
TEST(LeastRecomputed, BeginsBeforeAKindThatTakesMoreThanItFrees) {
  Needed needed{{100, 101, 102, 60, 50}};
  Recomputed found = least_recomputed(80, std::ref(needed), RecomputeCurve({{1}, {1.01}, {1.02}, {0.6}, {0.5}}));
  EXPECT_EQ(found.kinds, 0);
  EXPECT_EQ(found.more, 3);
  EXPECT_DOUBLE_EQ(found.share, 0.5);
}

TEST(LeastRecomputed, LooksAtLittleWhereTheCurveIsRight) {
  Needed needed{{100, 80, 61, 45, 30, 20, 12}};
  std::vector<RecomputeCurve::Point> points;
  for (double bytes : needed.bytes) points.push_back({bytes / 100, 0});
  Recomputed found = least_recomputed(35, std::ref(needed), RecomputeCurve(points));
  EXPECT_EQ(found.kinds, 3);
  EXPECT_EQ(found.more, 4);
  EXPECT_DOUBLE_EQ(found.share, 10.0 / 15);
  EXPECT_EQ(needed.asked, (std::set<int64_t>{0, 3, 4}));
}

}  // namespace
}  // namespace tokamak
