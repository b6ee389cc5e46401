#include <gtest/gtest.h>

#include <numeric>

#include "base/file.h"
#include "data/prepare_reader.h"
#include "data/sources/modules/parquet_module.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

/// Files that tools/make_parquet_goldens.py makes.
class ParquetTest : public SourceTest {
 protected:
  void SetUp() override {
    if (!fs::exists(fs::read_symlink("/proc/self/exe").parent_path() / kParquetModule))
      GTEST_SKIP() << "no module for Parquet in this build: tools/setup.sh parquet";
  }

  static std::string golden(const std::string& name) { return "tests/goldens/parquet/" + name; }

  /// The column `text`, which has its row's number behind each text, and the other columns of text.
  static Documents expected(bool numbered) {
    Documents texts;
    for (int row = 0; row < 35; ++row)
      if (const char* text = std::array{"one", "", "", "caf\xc3\xa9", "two\nlines"}[size_t(row % 5)]; *text)
        texts.push_back(text + (numbered ? " " + std::to_string(row) : ""));
    return texts;
  }
};

TEST_F(ParquetTest, OneColumnsTextsAreDocumentsAndNullsAreNone) {
  EXPECT_EQ(read(golden("groups.parquet")), expected(true));
  for (const char* column : {"large", "dict", "bytes"})
    EXPECT_EQ(read(golden("groups.parquet"), {.text_field = column}), expected(false)) << column;
  for (const char* compression : {"snappy", "gzip", "zstd"})
    EXPECT_EQ(read(golden(std::string(compression) + ".parquet")), expected(true)) << compression;
  EXPECT_EQ(read(golden("empty.parquet")), Documents{});
  EXPECT_EQ(read(write("other", read_file(golden("snappy.parquet"))), {.format = "parquet"}), expected(true));
}

/// Ids of a column, a row after the other; rows without any are no documents.
std::vector<std::vector<int32_t>> ids_of(const std::string& file, const std::string& column) {
  std::vector<std::vector<int32_t>> rows;
  auto source = open_source(file, {.text_field = column});
  for (Document document; source->next(document);) {
    EXPECT_TRUE(document.text.empty());
    rows.emplace_back(document.tokens.begin(), document.tokens.end());
  }
  return rows;
}

TEST_F(ParquetTest, ListsOfIntegersAreTokens) {
  std::vector<std::vector<int32_t>> short_rows, long_rows;
  for (int32_t row = 0; row < 35; ++row) {
    std::vector<int32_t> ids(size_t(row % 5 == 1 ? 0 : row % 5)), longer(size_t(row == 8 ? 700 : row % 3));
    std::iota(ids.begin(), ids.end(), row);
    std::iota(longer.begin(), longer.end(), 0);
    if (!ids.empty()) short_rows.push_back(ids);
    if (!longer.empty()) long_rows.push_back(longer);
  }
  for (const char* file : {"ids.parquet", "stream.arrow", "file.arrow"}) {
    EXPECT_EQ(ids_of(golden(file), "input_ids"), short_rows) << file;
    EXPECT_EQ(ids_of(golden(file), "long_ids"), long_rows) << file;
    expect_user_error([&] { ids_of(golden(file), "bad_ids"); }, {file, "token ids", "\"bad_ids\"", "-7", "rows up to"});
  }
}

TEST_F(ParquetTest, ArrowsStreamsAndFilesHaveTheSameTexts) {
  for (const char* file : {"stream.arrow", "file.arrow"}) {
    EXPECT_EQ(read(golden(file)), expected(true)) << file;
    EXPECT_EQ(read(golden(file), {.text_field = "large"}), expected(false)) << file;
    expect_user_error([&] { read(golden(file), {.text_field = "id"}); },
                      {file, "a column \"id\" of text", "\"input_ids\" (list<", "--field"});
    std::string whole = read_file(golden(file));
    for (size_t size : {size_t(3), size_t(100), whole.size() / 2})
      expect_user_error([&] { read(write("cut.arrow", whole.substr(0, size))); }, {"cut.arrow", "copy or download"});
    for (size_t place = 4; place < whole.size(); place += 61) {  // an error or other texts
      std::string changed = whole;
      changed[place] = char(changed[place] ^ 0x55);
      try {
        read(write("changed.arrow", changed));
      } catch (const UserError&) {
      }
    }
  }
}

TEST_F(ParquetTest, ProgressIsThatOfRows) {
  auto source = open_source(golden("groups.parquet"), {});
  int64_t size = int64_t(fs::file_size(golden("groups.parquet")));
  EXPECT_EQ(source->total_bytes(), size);
  EXPECT_EQ(source->bytes_read(), 0);
  Document document;
  for (int64_t last = 0; source->next(document); last = source->bytes_read()) EXPECT_GE(source->bytes_read(), last);
  EXPECT_EQ(source->bytes_read(), size);
}

// What `prepare` goes on from after an interruption, in any row group.
TEST_F(ParquetTest, ReadingGoesOnFromAnyRow) {
  Documents all = expected(true);
  for (size_t row = 0; row < all.size(); row += 5) {
    PrepareReader reader({golden("groups.parquet")}, {}, {.file = 0, .part = int64_t(row)});
    PrepareBatch batch;
    std::string got, rest;
    while (reader.fill(batch)) got += batch.text;
    for (size_t i = row; i < all.size(); ++i) rest += all[i];
    EXPECT_EQ(got, rest) << row;
  }
}

TEST_F(ParquetTest, NamesTheColumnsThatCanBeTaken) {
  auto read_column = [](const std::string& column) {
    return [=] { read(golden("groups.parquet"), {.text_field = column}); };
  };
  for (const char* column : {"none", "id", "tags", "tags.list.element", "meta.url"})
    expect_user_error(read_column(column), {"groups.parquet", std::string("a column \"") + column + "\" of text",
                                            "\"text\" (text)", "\"id\" (INT64)", "\"meta.url\" (nested)", "--field"});
}

TEST_F(ParquetTest, RefusesWhatIsDamaged) {
  std::string whole = read_file(golden("groups.parquet"));
  for (size_t size : {size_t(1), size_t(100), whole.size() / 2, whole.size() - 1})
    expect_user_error([&] { read(write("cut.parquet", whole.substr(0, size))); }, {"cut.parquet", "copy or download"});
  expect_user_error([&] { read(write("text.parquet", "no Parquet at all, whatever its name")); },
                    {"text.parquet", "expected Parquet, got damage"});
  std::string short_group = read_file(golden("snappy.parquet"));
  short_group[306] = char(short_group[306] ^ 2);  // how many rows the row group has
  expect_user_error([&] { read(write("short.parquet", short_group)); },
                    {"short.parquet", "behind row 35", "fewer values"});
  for (size_t place = 4; place < whole.size(); place += 29) {  // an error or other texts
    std::string changed = whole;
    changed[place] = char(changed[place] ^ 0x55);
    try {
      read(write("changed.parquet", changed));
    } catch (const UserError&) {
    }
  }
  expect_user_error([&] { read("-", {.format = "parquet"}); }, {"standard input"});
  expect_user_error([&] { read((folder_ / "gone.parquet").string()); }, {"gone.parquet"});
}

TEST(ParquetModule, ItsAbsenceIsToldWithWhatToInstall) {
  if (fs::exists(fs::read_symlink("/proc/self/exe").parent_path() / kParquetModule))
    GTEST_SKIP() << "the module is there";
  expect_user_error([] { open_source("tests/goldens/parquet/groups.parquet", {}); },
                    {"groups.parquet", kParquetModule, "tools/setup.sh parquet", "pip install pyarrow"});
}

}  // namespace
}  // namespace tokamak
