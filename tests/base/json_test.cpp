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

// nlohmann's parser would pass over what is behind it.
TEST(Json, AByteOfZeroIsNoEnd) {
  using namespace std::string_view_literals;
  for (std::string_view text : {"{}\0"sv, "{}\0x"sv, "[\0"sv, "[1,\0 2]"sv, "[\"\0\"]"sv}) {
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
    EXPECT_TRUE(parse_ordered_json(text).is_discarded()) << text;
  }
  EXPECT_EQ(json_error("{\n}\0x"sv), " (line 2, column 2: a byte of zero)");
  EXPECT_TRUE(parse_json(R"(["\u0000"])").is_array());
}

TEST(Json, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(json_error(R"({"a": [1, 2.5, "x"]})"), "");
  EXPECT_EQ(json_error("7"), "");
  EXPECT_EQ(json_error(R"({"a": NaN})"), " (column 7: syntax error while parsing value - invalid literal)");
  EXPECT_EQ(json_error("{\n  \"a\": 1,\n}"),
            " (line 3, column 1: syntax error while parsing object key - unexpected '}'; expected string literal)");
  EXPECT_EQ(json_error("{\"a\": 1"),
            " (column 8: syntax error while parsing object - unexpected end of input; expected '}')");
  EXPECT_EQ(json_error(""),
            " (column 1: syntax error while parsing value - unexpected end of input; expected '[', '{', or a literal)");
  std::string error = json_error(R"(["\ud83d "])");
  EXPECT_TRUE(error.starts_with(" (column 9: ") && error.find("surrogate") != error.npos) << error;
  EXPECT_LT(json_error("[\"" + std::string(10'000, 'x') + "\n\"]").size(), 200u);  // does not quote all of it
  EXPECT_EQ(json_error(nested_lists(kMaxJsonDepth + 1)),
            " (column 101: lists and objects nested more than 100 levels deep)");
}

TEST(Json, PrintsBytesThatAreNoUtf8) {
  EXPECT_EQ(format_json(nlohmann::json("a\xff")), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(format_json(nlohmann::ordered_json{{"b", 1}, {"a", 2}}, 1), "{\n \"b\": 1,\n \"a\": 2\n}");
}

}  // namespace
}  // namespace tokamak
