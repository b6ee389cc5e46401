#include "data/source_notes.h"

#include <gtest/gtest.h>

#include "data/open_source.h"

namespace tokamak {
namespace {

using Sentences = std::vector<std::string>;

TEST(SourceNotes, SaysEachSentenceOnceAndTheFirstOfAKind) {
  SourceNotes notes;
  for (const char* file : {"a", "b", "a", "c", "d", "e", "d"}) notes.add("a table", std::string(file) + " is a table");
  notes.add("JSON", "f is JSON");
  EXPECT_EQ(notes.take(), (Sentences{"a is a table", "b is a table", "c is a table", "f is JSON"}));
  EXPECT_EQ(notes.take(), Sentences());
  EXPECT_EQ(notes.totals(), Sentences{"and 2 more like these (a table)"});
}

TEST(SourceNotes, CountsMembersOfOnePass) {
  SourceNotes notes;
  for (int pass = 0; pass < 2; ++pass) {
    notes.begin_again();
    for (const char* member : {"a/1.png", "a/2.png", "a/1.cls", "a/README"}) notes.pass_over(member);
  }
  EXPECT_EQ(
      notes.totals(),
      Sentences{"passed over members of archives: 1 .cls, 2 .png, 1 without an ending; --members takes other names"});
}

TEST(SourceNotes, OptionsNeedNone) {
  note({}, "kind", "nobody hears it");
  tell_notes({}, [](const std::string&) { FAIL(); });
}

}  // namespace
}  // namespace tokamak
