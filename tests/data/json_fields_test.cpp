#include "data/json_fields.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/nested_lists.h"

namespace tokamak {
namespace {

JsonFields fields(std::string_view text) { return JsonFields(text, "a.json:3", "copy it again"); }

TEST(JsonFields, ReadsEveryKind) {
  JsonFields all = fields(R"({"n": 7, "r": 0.5, "t": "x", "o": {"n": 8}, "l": [{"n": 1}, {"n": 2}], "e": []})");
  EXPECT_EQ(all.number("n"), 7);
  EXPECT_EQ(all.real("r"), 0.5);
  EXPECT_EQ(all.real("n"), 7.0);
  EXPECT_EQ(all.text("t"), "x");
  EXPECT_EQ(all.object("o").number("n"), 8);
  EXPECT_EQ(all.objects("l").at(1).number("n"), 2);
  EXPECT_TRUE(all.objects("e").empty());
  EXPECT_TRUE(all.has("e"));
  EXPECT_FALSE(all.has("missing"));
}

TEST(JsonFields, PartsOutliveTheWhole) {
  std::vector<JsonFields> parts = fields(R"({"l": [{"t": "one"}]})").objects("l");
  EXPECT_EQ(parts.at(0).text("t"), "one");
  expect_user_error([&] { parts.at(0).number("t"); }, {"a.json:3", "`t`", "copy it again"});
}

TEST(JsonFields, NamesWhatIsWrong) {
  JsonFields all = fields(R"({"n": -7, "big": 18446744073709551615, "r": 0.5, "t": "x", "l": [1], "null": null})");
  expect_user_error([&] { all.number("n"); },
                    {"[data] a.json:3: expected a whole number, at least 0 as `n`, got -7; copy it again"});
  expect_user_error([&] { all.number("big"); }, {"`big`, got 18446744073709551615"});
  expect_user_error([&] { all.number("r"); }, {"`r`, got 0.5"});
  EXPECT_EQ(fields(R"({"n": 7})").number("n", 7), 7);
  expect_user_error([&] { fields(R"({"n": 8})").number("n", 7); }, {"a whole number, at most 7 as `n`, got 8"});
  expect_user_error([&] { all.real("t"); }, {"a number as `t`, got \"x\""});
  expect_user_error([&] { all.text("n"); }, {"a string as `n`, got -7"});
  expect_user_error([&] { all.text("missing"); }, {"`missing`, got nothing"});
  expect_user_error([&] { all.text("null"); }, {"`null`, got nothing"});
  expect_user_error([&] { all.object("l"); }, {"an object as `l`, got [1]"});
  expect_user_error([&] { all.objects("l"); }, {"a list of objects as `l`, got [1]"});
  expect_user_error([&] { all.objects("t"); }, {"a list of objects as `t`"});
  expect_user_error([&] { all.refuse("r", "at least 1"); }, {"at least 1 as `r`, got 0.5"});
}

TEST(JsonFields, WantsAnObjectOfTheFormat) {
  for (const char* text : {"", "no JSON", "[1]", "{\"n\": "})
    expect_user_error([&] { fields(text); }, {"a.json:3: expected a JSON object, got", "copy it again"});
  JsonFields all = fields(R"({"format": "a", "version": 1})");
  all.require_format("a", 1);
  expect_user_error([&] { all.require_format("b", 1); }, {"expected b as `format`, got \"a\""});
  expect_user_error([&] { all.require_format("a", 2); }, {"expected 2 as `version`, got 1"});
}

TEST(JsonFields, RefusesDeepObjects) {
  std::string deep = fmt::format(R"({{"a":{}}})", nested_lists(100'000));
  expect_user_error([&] { fields(deep); }, {"a.json:3", "JSON object", "copy it again"});
}

}  // namespace
}  // namespace tokamak
