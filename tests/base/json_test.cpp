#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/nested_lists.h"

namespace tokamak {
namespace {

TEST(Json, ReadsSomeDepthAndRefusesMore) {
  EXPECT_TRUE(parse_json(nested_lists(kMaxJsonDepth)).is_array());
  EXPECT_TRUE(parse_json(nested_lists(kMaxJsonDepth + 1)).is_discarded());
  EXPECT_TRUE(parse_ordered_json(nested_lists(100'000)).is_discarded());
  std::string objects;
  for (int i = 0; i < 20'000; ++i) objects += R"({"a":)";
  EXPECT_TRUE(parse_json(objects + "1" + std::string(20'000, '}')).is_discarded());
}

TEST(Json, BracketsInStringsAreNoDepth) {
  std::string text = "\"" + std::string(1000, '[') + R"(\"{\\")";
  EXPECT_TRUE(parse_json("[" + text + ", " + text + "]").is_array());
  EXPECT_TRUE(parse_json(R"(["\\", )" + nested_lists(kMaxJsonDepth) + "]").is_discarded());
}

TEST(Json, PrintsBytesThatAreNoUtf8) {
  EXPECT_EQ(format_json(nlohmann::json("a\xff")), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(format_json(nlohmann::ordered_json{{"b", 1}, {"a", 2}}, 1), "{\n \"b\": 1,\n \"a\": 2\n}");
}

}  // namespace
}  // namespace tokamak
