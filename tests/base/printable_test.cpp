#include "base/printable.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(Printable, LeavesOrdinaryText) {
  for (const char* text : {"", "a\tb\nc", "naïve 日本 \xf0\x9f\x98\x80"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[2Jgone\r\a\x7f"), "\\x1b[2Jgone\\x0d\\x07\\x7f");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2J"),
            "a\\u009b2J");
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

}  // namespace
}  // namespace tokamak
