#include "data/sources/text_begin.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

using namespace std::string_view_literals;

TEST(TextBegin, NamesWhatIsNoText) {
  auto refuse = [](std::string_view begin, std::string_view kind) {
    expect_user_error([&] { refuse_other_than_text(begin, "a.dat"); }, {"a.dat", std::string(kind)});
  };
  refuse("PK\x03\x04rest", "a zip archive");
  refuse(
      "\xfd"
      "7zXZ\0rest"sv,
      "xz");
  refuse("BZh91AY&SYrest", "bzip2");
  refuse("PAR1\x15\x04", "Parquet");
  refuse("%PDF-1.7", "PDF");
  refuse(
      "\xff\xfe"
      "a\0"sv,
      "UTF-16");
  refuse("abc\0def"sv, "bytes of zero");
  for (std::string_view text : {"", "PKZIP was a program", "BZh is no word", "PAR1 of a run", "na\xc3\xafve"})
    EXPECT_NO_THROW(refuse_other_than_text(text, "a.txt")) << text;
}

TEST(TextBegin, SaysWhatIsOdd) {
  auto warning = [](std::string_view begin, std::string_view name) { return text_warning(begin, name); };
  EXPECT_NE(warning("a,b\n1,2\n", "x.CSV").find("a table"), std::string::npos);
  EXPECT_NE(warning("a\tb\n", "x.tsv").find("a table"), std::string::npos);
  EXPECT_NE(warning(" [\n {\"text\": 1}]", "x.txt").find("is JSON"), std::string::npos);
  EXPECT_NE(warning("{}", "x.json").find("is JSON"), std::string::npos);
  EXPECT_NE(warning("na\xefve", "x.txt").find("not UTF-8"), std::string::npos);
  EXPECT_EQ(warning("na\xc3\xafve, [1] \xe6\x97", "x.txt"), "");  // the last character is cut off
  EXPECT_EQ(warning("[1] A note", "x.txt"), "");
  EXPECT_EQ(warning("PK\x03\x04\xff", "x.csv"), "");  // refused with a better reason
}

}  // namespace
}  // namespace tokamak
