#include "data/stop_strings.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace tokamak {
namespace {

struct Cut {
  std::string text;
  bool found;
  bool operator==(const Cut&) const = default;
};

// The slow twin looks at the whole text.
Cut cut_whole(const std::string& text, const std::vector<std::string>& stops) {
  size_t first = text.npos;
  for (const std::string& stop : stops)
    if (!stop.empty()) first = std::min(first, text.find(stop));
  return {text.substr(0, first), first != text.npos};
}

Cut cut_in_pieces(const std::string& text, const std::vector<std::string>& stops, uint64_t seed) {
  StopStrings finder(stops);
  std::string kept;
  for (size_t at = 0, i = 0; at < text.size() && !finder.found(); ++i) {
    size_t length = 1 + philox4x32(seed, i)[0] % 4;
    kept += finder.add(std::string_view(text).substr(at, length));
    at += length;
  }
  if (!finder.found()) kept += finder.rest();
  return {kept, finder.found()};
}

TEST(StopStrings, HoldsBackWhatMayBecomeOne) {
  StopStrings finder({"\n\n", "END"});
  EXPECT_EQ(finder.add("one\n"), "one");
  EXPECT_EQ(finder.add("two E"), "\ntwo ");
  EXPECT_EQ(finder.add("N"), "");
  EXPECT_EQ(finder.add("ter"), "ENter");
  EXPECT_FALSE(finder.found());
  EXPECT_EQ(finder.add("\n\nmore"), "");
  EXPECT_TRUE(finder.found());
  EXPECT_EQ(finder.rest(), "");
}

TEST(StopStrings, AreTypedWithBackslashes) {
  EXPECT_EQ(typed_string("a\\n\\n\\tb\\\\n"), "a\n\n\tb\\n");
  EXPECT_EQ(typed_string("\\x\\"), "\\x\\");
}

TEST(StopStrings, InPiecesAsInTheWhole) {
  const std::vector<std::vector<std::string>> kStops = {{}, {""}, {"a"}, {"ab", "b"}, {"aab", "ba"}, {"abab", "bb"}};
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::string text;
    for (uint64_t i = 0; i < seed % 23; ++i) text += "abc"[philox4x32(seed, i, 1)[0] % 3];
    const std::vector<std::string>& stops = kStops[seed % kStops.size()];
    EXPECT_EQ(cut_in_pieces(text, stops, seed), cut_whole(text, stops)) << text;
  }
}

}  // namespace
}  // namespace tokamak
