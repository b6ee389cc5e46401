#include "base/printable.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tokamak {
namespace {

TEST(Printable, LeavesOrdinaryText) {
  for (const char* text : {"", "a\tb\nc", "naïve 日本 \xf0\x9f\x98\x80"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[2Jgone\r\a\x7f"), "\\x1b[2Jgone\\x0d\\x07\\u007f");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2J"),
            "a\\u009b2J");
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, KeepsTheMeaningOfJson) {
  nlohmann::json value = {{"a\x1b\x7f\xc2\x9b\n\tz", "\x01"}};
  std::string shown = printable(format_json(value, 2));
  EXPECT_EQ(parse_json(shown), value);
  for (char c : shown) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f)) << shown;
}

}  // namespace
}  // namespace tokamak
