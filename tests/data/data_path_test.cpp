#include "data/data_path.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

std::vector<DataPath> parse(std::vector<std::string> entries) { return parse_data_paths(entries, "data.path"); }

TEST(DataPath, WithAndWithoutWeight) {
  EXPECT_EQ(parse({"data"}), (std::vector<DataPath>{{"data", {}}}));
  EXPECT_EQ(parse({"web@0.7", "books/*.txt@3e-1"}), (std::vector<DataPath>{{"web", 0.7}, {"books/*.txt", 0.3}}));
}

TEST(DataPath, AnAtWithoutANumberIsPartOfThePath) {
  EXPECT_EQ(parse({"me@home/data"}), (std::vector<DataPath>{{"me@home/data", {}}}));
  EXPECT_EQ(parse({"a@b@2"}), (std::vector<DataPath>{{"a@b", 2.0}}));
}

TEST(DataPath, Mistakes) {
  expect_user_error([] { parse({}); }, {"[data.path]", "expected the path of data", "nothing"});
  expect_user_error([] { parse({"@3"}); }, {"expected the path of data", "'@3'"});
  for (const char* entry : {"a@0", "a@-1", "a@inf", "a@nan"})
    expect_user_error([&] { parse({entry}); }, {"weight above 0", entry, "leave the entry out"});
  expect_user_error([] { parse({"a@1", "b", "c"}); }, {"all 3 entries or for none", "got them for 1"});
}

TEST(DataPath, WhatExistsUnderItsWholeNameIsMeant) {
  TemporaryFolder folder;
  std::string name = folder / "a@0.5";
  EXPECT_EQ(parse_data_paths({name}, "data.path"), (std::vector<DataPath>{{folder / "a", 0.5}}));
  make_folder(name);
  EXPECT_EQ(parse_data_paths({name}, "data.path"), (std::vector<DataPath>{{name, std::nullopt}}));
  EXPECT_EQ(parse_data_paths({name + "@2"}, "data.path"), (std::vector<DataPath>{{name, 2.0}}));
}

}  // namespace
}  // namespace tokamak
