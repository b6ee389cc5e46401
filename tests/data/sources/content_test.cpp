#include "data/sources/content.h"

#include <gtest/gtest.h>

#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

using namespace std::string_view_literals;
using Form = Content::Form;

TEST(Content, NamesWhatIsNoText) {
  auto refuse = [](std::string_view begin, std::string_view kind) {
    EXPECT_EQ(look_at(begin, "a.dat").form, Form::kOther);
    expect_user_error([&] { require_text(look_at(begin, "a.dat"), "a.dat"); }, {"a.dat", std::string(kind)});
    EXPECT_EQ(text_warning(look_at(begin, "a.csv"), "a.csv"), "") << "refused with a better reason";
  };
  refuse("PK\x03\x04rest", "a zip archive");
  refuse(
      "\xfd"
      "7zXZ\0rest"sv,
      "compressed");
  refuse("BZh91AY&SYrest", "compressed");
  refuse("PAR1\x15\x04", "Parquet");
  refuse("ARROW1\0\0rest"sv, "Arrow");
  refuse("%PDF-1.7", "PDF");
  refuse(
      "\xff\xfe"
      "a\0"sv,
      "UTF-16");
  refuse("\x1f\x8b\x08rest", "compressed");
  refuse(std::string(257, 'a') + "ustar  ", "tar");
  refuse("abc\0def"sv, "bytes of zero");
  refuse(std::string(60'000, 'a') + '\0', "bytes of zero");
  for (std::string_view text : {"", "PKZIP was a program", "BZh", "BZh is no word", "PAR1 of a run", "na\xc3\xafve"})
    EXPECT_EQ(look_at(text, "a.txt").form, Form::kText) << text;
}

TEST(Content, SaysWhatIsOdd) {
  auto warning = [](std::string_view begin, std::string_view name) { return text_warning(look_at(begin, name), name); };
  for (const char* name : {"x.CSV", "x.csv.gz", "x.tsv.zst"})
    EXPECT_NE(warning("a b\n", name).find("a table"), std::string::npos) << name;
  EXPECT_NE(warning(" [\n {\"text\": 1}]", "x.txt").find("jq -c '.[]'"), std::string::npos);
  EXPECT_NE(warning("{\n \"text\": 1\n}", "-").find("is JSON"), std::string::npos);
  EXPECT_NE(warning("{}", "x.json.gz").find("is JSON"), std::string::npos);
  EXPECT_NE(warning("na\xefve", "x.txt").find("not UTF-8"), std::string::npos);
  EXPECT_NE(warning(std::string(30'000, 'a') + "\xef more", "x.txt").find("not UTF-8"), std::string::npos);
  EXPECT_NE(warning("caf\xe9", "x.txt").find("not UTF-8"), std::string::npos);
  std::string cut = std::string(kContentBegin - 2, 'a') + "\xe6\x97";  // the last character
  EXPECT_EQ(warning(cut, "x.txt"), "");
  EXPECT_NE(warning(cut.substr(1), "x.txt").find("not UTF-8"), std::string::npos);
  for (const char* text : {"[1] A note", "[[A link]]", "{a: 1}", "{ x = 1; }\n{ y = 2; }\n"})
    EXPECT_EQ(warning(text, "x.txt"), "") << text;
}

TEST(Content, TablesWithoutAName) {
  auto is_table = [](std::string_view begin) { return look_at(begin, "standard input").what == "a table"; };
  EXPECT_TRUE(is_table("id,text\n1,one\n2,two\n3,three\n4,fo"));
  EXPECT_TRUE(is_table("id\ttext\n1\tone, and more\n2\ttwo\n3\tthree\n"));
  EXPECT_TRUE(is_table("id;text\n1;one\n2;\"two;\nand more\"\n3;three\n"));
  EXPECT_FALSE(is_table("id,text\n1,one\n2,two\n"));
  EXPECT_FALSE(is_table("One, two\nthree, four\nfive, six\nseven, eight\n")) << "verses";
  EXPECT_FALSE(is_table("One,\ntwo,\nthree,\nfour,\nfive\n"));
  EXPECT_FALSE(is_table("id,text\n1,one\n2,two,2\n3,three\n"));
  EXPECT_FALSE(is_table("one\ntwo\nthree\nfour\nfive\n"));
}

TEST(Content, JsonLinesUnderAnyName) {
  std::string two = "{\"text\": \"one\"}\n{\"text\": \"two\"}\n";
  for (const char* name : {"a.json", "a.json.gz", "a.txt", "a", "standard input", "a.tar member b"})
    for (const std::string& text : {two, "\xef\xbb\xbf" + two, std::string("{\"a\": 1} \r\n\n {\"a\": 2}")})
      EXPECT_EQ(look_at(text, name).form, Form::kJsonLines) << name << text;
  for (const char* text :
       {"{\"text\": \"one\"}\n", "{\"a\": {\n\"b\": 1}}\n{\"a\"", "{\"a\": 1}\nplain\n", "{\n}\n{\n}\n"})
    EXPECT_NE(look_at(text, "a.json").form, Form::kJsonLines) << text;
}

// The first object may be longer than what is looked at otherwise, and come a few bytes at a time.
TEST(Content, JsonLinesMayBeLong) {
  std::string line = "{\"text\": \"" + std::string(300'000, 'x') + "\"}\n";
  for (const auto& [text, form] : {std::pair(line + line, Form::kJsonLines), std::pair(line, Form::kDoubtful)}) {
    ByteBuffer buffer(std::make_unique<DrippingBytes>(text, 1000));
    EXPECT_EQ(look_at(buffer).form, form);
    EXPECT_EQ(buffer.position(), 0);
    buffer.hold(text.size() + 1);
    EXPECT_EQ(buffer.view(), text);
  }
}

}  // namespace
}  // namespace tokamak
