#include "config/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace tokamak {
namespace {

TEST(Number, WholeNumbersAreExact) {
  struct {
    const char* text;
    int64_t value;
  } expected[] = {{"0", 0},
                  {"-17", -17},
                  {"007", 7},
                  {"1e4", 10'000},
                  {"1E+4", 10'000},
                  {"1.5e3", 1500},
                  {"120e-1", 12},
                  {"10.0", 10},
                  {"0e99", 0},
                  {"300k", 300'000},
                  {"300K", 300'000},
                  {"2M", 2'000'000},
                  {"1.5M", 1'500'000},
                  {"10B", 10'000'000'000},
                  {"10G", 10'000'000'000},
                  {"-3T", -3'000'000'000'000},
                  {"9007199254740993", 9007199254740993},
                  {"9.223372036854775807e18", INT64_MAX},
                  {"-9223372036854775808", INT64_MIN}};
  for (const auto& [text, value] : expected) EXPECT_EQ(parse_whole(text), value) << text;
}

TEST(Number, WhatIsNoWholeNumberIsNone) {
  for (const char* text : {"",
                           "-",
                           ".",
                           "1.5",
                           "1e-1",
                           "1.0005k",
                           "9223372036854775808",
                           "1e19",
                           "10000000T",
                           "1e999999999999",
                           "k",
                           "e4",
                           "1e",
                           "1e+",
                           "1e+-4",
                           "1kk",
                           "1e3k",
                           "10b",
                           "10m",
                           "10 k",
                           "+5",
                           "0x10",
                           "1_000",
                           "1,000",
                           "inf",
                           "nan",
                           "1.2.3",
                           "1.00000000000000000000001"})
    EXPECT_EQ(parse_whole(text), std::nullopt) << text;
}

TEST(Number, RealNumbersAreTheNearest) {
  EXPECT_EQ(parse_real("10B"), 10e9);
  EXPECT_EQ(parse_real("0.3k"), 300.0);
  EXPECT_EQ(parse_real("1.1M"), 1.1e6);
  EXPECT_EQ(parse_real("-2.5e-3"), -2.5e-3);
  EXPECT_EQ(parse_real("1e30"), 1e30);
  EXPECT_TRUE(std::isnan(*parse_real("nan")));
  for (const char* text : {"", "k", "10b", "infB", "nank", "1e3k", "two", "1e400"})
    EXPECT_EQ(parse_real(text), std::nullopt) << text;
}

TEST(Number, ABudgetIsRoundedDownAndNeverZero) {
  EXPECT_EQ(format_budget_gib(12.349), "12.34");
  EXPECT_EQ(format_budget_gib(12), "12.00");
  EXPECT_EQ(format_budget_gib(0.9999), "0.999");
  EXPECT_EQ(format_budget_gib(0.05129), "0.0512");
  EXPECT_EQ(format_budget_gib(0), "0");
  EXPECT_EQ(format_budget_gib(-3), "0");
  for (double gib = 1e-9; gib < 1e6; gib *= 1.7) {
    double typed = std::stod(format_budget_gib(gib));
    EXPECT_GT(typed, 0.98 * gib);
    EXPECT_LE(typed, gib);
  }
}

}  // namespace
}  // namespace tokamak
