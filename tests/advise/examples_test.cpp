#include "advise/examples.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tokamak {
namespace {

// Half of the last digit that is known.
double rounding(double known) {
  double unit = 1;
  while (unit > 1e-3 && std::abs(known / unit - std::round(known / unit)) > 1e-9) unit /= 10;
  return 0.5 * unit + 1e-9;
}

TEST(Examples, EachIsTheKnownNumber) {
  ASSERT_EQ(plan_examples().size(), 22u);
  for (const Example& example : plan_examples()) {
    EXPECT_NEAR(example.value, example.known, rounding(example.known)) << example.what;
    EXPECT_FALSE(example.formula.empty()) << example.what;
  }
}

TEST(Examples, AllArePrintedWithTheirFormula) {
  std::string text = format_examples();
  for (const Example& example : plan_examples()) {
    EXPECT_NE(text.find(example.what), text.npos) << example.what;
    EXPECT_NE(text.find(example.formula), text.npos) << example.formula;
  }
  EXPECT_NE(text.find("one size off"), text.npos);
  EXPECT_NE(text.find("F = 96 B s l h^2 (1 + s / (6 h) + V / (16 l h))"), text.npos);
  EXPECT_NE(text.find("1008.0"), text.npos);
}

}  // namespace
}  // namespace tokamak
