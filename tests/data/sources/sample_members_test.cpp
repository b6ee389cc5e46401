#include "data/sources/sample_members.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(SampleMembers, FindsTheFirstSampleWithTwo) {
  SampleMembers samples;
  EXPECT_EQ(samples.add("s/1.txt"), "");
  EXPECT_EQ(samples.add("s/3.json"), "");
  EXPECT_EQ(samples.add("t/1.json"), "") << "another folder";
  EXPECT_EQ(samples.add("s/1.meta.json"), "s/1.txt");
  EXPECT_EQ(samples.add("s/3.txt"), "") << "said once";
}

TEST(SampleMembers, NamesWithoutDots) {
  SampleMembers samples;
  EXPECT_EQ(samples.add("a.d/one"), "");
  EXPECT_EQ(samples.add("a.d/two"), "");
  EXPECT_EQ(samples.add("a.d/two.txt"), "a.d/two");
}

TEST(SampleMembers, TheSameMemberTwiceIsAnotherMatter) {
  SampleMembers samples;
  EXPECT_EQ(samples.add("1.txt"), "");
  EXPECT_EQ(samples.add("1.txt"), "");
}

// Memory is bounded.
TEST(SampleMembers, LooksAtTheFirstOnes) {
  SampleMembers samples;
  for (int i = 0; i < 70'000; ++i) EXPECT_EQ(samples.add(std::to_string(i) + ".txt"), "");
  EXPECT_EQ(samples.add("0.json"), "");
}

}  // namespace
}  // namespace tokamak
