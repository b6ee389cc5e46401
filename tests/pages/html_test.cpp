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

TEST(CommandHtml, IsBrokenBetweenOptionsOnly) {
  std::string html = command_html("tokamak train my run.toml --a.b=1 --c=\"x\"");
  std::vector<std::string> words;
  for (size_t at = 0; (at = html.find('>', at)) != html.npos; at = html.find("</span>", at) + 7)
    words.push_back(html.substr(at + 1, html.find("</span>", at) - at - 1));
  EXPECT_EQ(words, (std::vector<std::string>{"tokamak train my run.toml", "--a.b=1", "--c=&quot;x&quot;"}));
}

}  // namespace
}  // namespace tokamak
