#include "data/index_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/json_fields.h"

namespace tokamak {
namespace {

using nlohmann::json;

json index_of(const json& sources) {
  json split = {{"documents", 3}, {"shards", {{{"file", "train_000000.bin"}, {"tokens", 7}}}}, {"sources", sources}};
  json other = split;
  other["sources"] = json::array();
  return {{"format", "x"}, {"aaa", json::array()}, {"sources", {1, 2}}, {"train", split}, {"val", other}};
}

TEST(IndexText, TheSealIsThatOfTheObject) {
  json sources = {{{"path", "a \"b\" \\"}, {"bytes", 12}},
                  {{"path", "sources"}, {"bytes", -1.5}},
                  {{"path", "\xc3\xa9 \x01\n[]{},:"}, {"nested", {{"sources", {1, {2, 3}}}}}}};
  std::string text = seal_json(index_of(sources));
  IndexText scanned = scan_index(text);
  EXPECT_EQ(scanned.given, json::parse(text)[kSeal]);
  EXPECT_EQ(scanned.given, scanned.seal);
}

TEST(IndexText, OnlyTheSplitsListsAreLeftOut) {
  json index = index_of({{{"path", "]"}}, {{"path", "\\\"]"}}});
  json expected = index_of(json::array());
  EXPECT_EQ(json::parse(scan_index(seal_json(index)).rest), expected);
  json nested = {{"train", {{"sources", 5}, {"z", {1}}}}, {"val", {{"sources", {{"a", {1}}}}}}};
  EXPECT_EQ(json::parse(scan_index(seal_json(nested)).rest), nested) << "they are no lists";
}

TEST(IndexText, NoticesEveryChange) {
  std::string text = seal_json(index_of({{{"path", "a.txt"}, {"bytes", 12}}}));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == '7' ? '8' : '7';
    bool is_space = text[i] == ' ' || text[i] == '\n';
    IndexText scanned = scan_index(changed);
    EXPECT_NE(scanned.given, scanned.seal) << i << (is_space ? ", a space" : "");
  }
}

TEST(IndexText, OtherTextHasNoSealThatFits) {
  for (const char* text : {"", "{", "\"", "{\"checksum\"", "{\"checksum\": 5}", "{\"checksum\": \"", "]]]]", "{\"a\\",
                           "[\"sources\": [", "{\"x\": {\"sources\": [}}}}]]", "{}"}) {
    IndexText scanned = scan_index(text);
    EXPECT_NE(scanned.given, scanned.seal) << text;
  }
}

}  // namespace
}  // namespace tokamak
