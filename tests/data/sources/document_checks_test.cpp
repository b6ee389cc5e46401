// What is noticed of a document's text.
#include "data/sources/document_checks.h"

#include <gtest/gtest.h>

#include "data/source_notes.h"

namespace tokamak {
namespace {

TEST(DocumentChecks, ATextInAnotherEncodingIsToldWithItsPlace) {
  SourceOptions options;
  note_encoding(options, "\xff", "nobody hears it");
  options.notes = std::make_shared<SourceNotes>();
  note_encoding(options, "caf\u00e9", "good.csv");
  EXPECT_TRUE(options.notes->take().empty());
  note_encoding(options, "caf\xe9", "latin.csv row 3");
  std::vector<std::string> told = options.notes->take();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("latin.csv row 3"), told[0].npos);
}

TEST(DocumentChecks, ADocumentTakesABoundedPartOfMemory) { EXPECT_EQ(most_document_bytes({.part_bytes = 10}), 1280u); }

}  // namespace
}  // namespace tokamak
