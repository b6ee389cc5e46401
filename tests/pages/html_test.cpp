#include "pages/html.h"

#include <gtest/gtest.h>

namespace tokamak {
namespace {

TEST(EscapeHtml, NoCharacterEndsATextOrAnAttribute) {
  EXPECT_EQ(escape_html("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(escape_html("&lt;"), "&amp;lt;") << "once for each time";
}

TEST(EscapeHtml, WhatNoPageMayHaveIsNotThere) {
  std::string shown =
      escape_html(std::string_view("a\0\x1b"
                                   "b",
                                   4));
  EXPECT_EQ(shown.find('\0'), std::string::npos);
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace tokamak
