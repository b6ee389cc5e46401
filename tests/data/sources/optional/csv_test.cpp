#include <gtest/gtest.h>

#include "data/source_notes.h"
#include "data/sources/content.h"
#include "data/sources/optional/csv_rows.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

using CsvSourceTest = SourceTest;

TEST_F(CsvSourceTest, OneColumnOfEachRowIsADocument) {
  std::string file = write("a.csv", "id,text\r\n1,one\r\n\r\n2,\"two, \"\"and\"\"\nmore\"\r\n3,\r\n4, four ");
  EXPECT_EQ(read(file), (Documents{"one", "two, \"and\"\nmore", " four "}));
  EXPECT_EQ(read(file, {.text_field = "id"}), (Documents{"1", "2", "3", "4"}));
  EXPECT_EQ(read(file, {.format = "text"}).size(), 1u);
}

TEST_F(CsvSourceTest, ItsNameOrFirstRowTellsTheDelimiter) {
  EXPECT_EQ(read(write("a.tsv", "text\tnote\none, two\t\"x\"\n")), Documents{"one, two"});
  EXPECT_EQ(read(write("b.csv", "\xef\xbb\xbf\"text\";\"note\"\none, two;x\n")), Documents{"one, two"});
  EXPECT_EQ(read(write("c.csv", "note\ttext\nx\tone\n")), Documents{"one"});
  EXPECT_EQ(read(write("one.tsv", "text\na,b;c\n")), Documents{"a,b;c"});
  EXPECT_EQ(read(write("d", "text|note,a\n"), {.format = "csv", .text_field = "a"}), Documents{});
}

TEST_F(CsvSourceTest, RowsDoNotDependOnHowBytesCome) {
  std::string table = "text,id\n\"a\n\"\"b\"\"\",1\r\nb,2\n\nc,3";
  for (size_t at_once = 1; at_once < table.size() + 1; ++at_once) {
    CsvRows rows(std::make_unique<DrippingBytes>(table, at_once), 100);
    std::vector<CsvRows::Row> all;
    for (CsvRows::Row row; rows.next(row);) all.push_back(row);
    EXPECT_EQ(all, (std::vector<CsvRows::Row>{{"text", "id"}, {"a\n\"b\"", "1"}, {"b", "2"}, {"c", "3"}})) << at_once;
    EXPECT_EQ(rows.number(), 4);
  }
}

TEST_F(CsvSourceTest, NamesTheColumnsWhereOneIsMissing) {
  expect_user_error([&] { read(write("a.csv", "id,body\n1,x\n")); },
                    {"a.csv", "expected a column \"text\"", "\"id\", \"body\"", "--field"});
  expect_user_error([&] { read(write("b.csv", "\n\n")); }, {"b.csv", "names", "empty"});
}

TEST_F(CsvSourceTest, NamesTheRowThatIsDamaged) {
  std::string uneven = write("a.csv", "id,text\n1,one\n2\n3,x,y\n4,four\n");
  expect_user_error([&] { read(uneven); }, {"a.csv row 3", "expected 2 fields", "got 1", "--skip-bad"});
  SourceOptions counts = {.bad_lines = std::make_shared<std::atomic<int64_t>>(0)};
  EXPECT_EQ(read(uneven, counts), (Documents{"one", "four"}));
  EXPECT_EQ(*counts.bad_lines, 2);
  expect_user_error([&] { read(write("b.csv", "text,id\none,1\n\"tw\"o,2\n")); }, {"b.csv row 3", "quotes"});
  expect_user_error([&] { read(write("c.csv", "text,id\none,1\n\"two,2\n")); }, {"c.csv row 3", "quotes", "the end"});
  std::string open = "text\n\"" + std::string(2 * kContentBegin, 'x');
  CsvRows rows(std::make_unique<DrippingBytes>(open, 10), 1000);
  CsvRows::Row row;
  EXPECT_TRUE(rows.next(row));
  expect_user_error([&] { rows.next(row); }, {"row 2", "at most 1000 bytes", "never closed"});
}

TEST_F(CsvSourceTest, TellsWhatIsNotUtf8) {
  SourceOptions options = {.notes = std::make_shared<SourceNotes>()};
  EXPECT_EQ(read(write("a.csv", "text\ncaf\xe9\n"), options), Documents{"caf\xe9"});
  EXPECT_NE(options.notes->take().at(0).find("not UTF-8"), std::string::npos);
}

}  // namespace
}  // namespace tokamak
