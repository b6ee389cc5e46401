#include "config/suggest.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Suggest, FindsTheNearestWord) {
  std::vector<std::string> known = {"train", "generate", "tokenize", "explain"};
  EXPECT_EQ(nearest_word("trian", known), "train");
  EXPECT_EQ(nearest_word("generat", known), "generate");
  EXPECT_EQ(nearest_word("xplain", known), "explain");
  EXPECT_EQ(nearest_word("token", known), "") << "three missing letters of five are no near miss";
  EXPECT_EQ(nearest_word("fly", known), "");
  EXPECT_EQ(nearest_word("", known), "");
  EXPECT_EQ(nearest_word("x", {}), "");
}

TEST(Suggest, TheFullKeyBreaksTies) {
  std::vector<std::string> known = {"data.path", "train.path", "model.path"};
  EXPECT_EQ(nearest_word("trian.path", known), "train.path");
  EXPECT_EQ(nearest_word("path", known), "data.path");
}

}  // namespace
}  // namespace tokamak
