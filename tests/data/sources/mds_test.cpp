#include <gtest/gtest.h>

#include "data/passed_over.h"
#include "data/source_notes.h"
#include "data/sources/mds_index.h"
#include "data/token_shard_index.h"
#include "tests/data/sources/mds_bytes.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTwoTexts =
    R"({"column_encodings": ["str", "bytes"], "column_names": ["text", "url"], "column_sizes": [null, null]})";

std::string two_texts() {
  return mds_shard({mds_sample({"one", "a"}), mds_sample({"", "b"}), mds_sample({"caf\xc3\xa9", "c"})}, kTwoTexts);
}

class MdsTest : public SourceTest {
 protected:
  std::string write_shard(const std::vector<std::string>& samples, std::string_view config) {
    return write("a.mds", mds_shard(samples, config));
  }
  /// A shard of one column.
  std::string write_column(const std::string& encoding, const std::string& size,
                           const std::vector<std::string>& values) {
    return write_shard(values, R"({"column_encodings": [")" + encoding +
                                   R"("], "column_names": ["text"], "column_sizes": [)" + size + "]}");
  }
  std::vector<int32_t> tokens_of(const std::string& path) {
    auto source = open_source(path, {});
    std::vector<int32_t> all;
    for (Document document; source->next(document);)
      all.insert(all.end(), document.tokens.begin(), document.tokens.end());
    return all;
  }
  Documents found(const std::string& input = "") {
    Documents names;
    for (const fs::path& path : find_files((folder_ / input).string(), {}, &passed_over_))
      names.push_back(path.lexically_relative(folder_.path()).string());
    return names;
  }
  static std::string entry(const std::string& raw, size_t bytes, const std::string& zip = "", size_t zip_bytes = 0) {
    auto file = [](const std::string& name, size_t size) {
      return R"({"basename": ")" + name + R"(", "bytes": )" + std::to_string(size) + R"(, "hashes": {}})";
    };
    return R"({"format": "mds", "version": 2, "samples": 3, "raw_data": )" + file(raw, bytes) + R"(, "zip_data": )" +
           (zip.empty() ? "null" : file(zip, zip_bytes)) + "}";
  }
  void write_index(const std::string& name, const std::string& entries) {
    write(name, R"({"shards": [)" + entries + R"(], "version": 2})");
  }

  PassedOver passed_over_;
};

TEST_F(MdsTest, OneColumnOfEachSampleIsADocument) {
  std::string file = write("a.mds", two_texts());
  EXPECT_EQ(read(file), (Documents{"one", "caf\xc3\xa9"}));
  EXPECT_EQ(read(file, {.text_field = "url"}), (Documents{"a", "b", "c"}));
  EXPECT_EQ(read(write("none.mds", mds_shard({}, kTwoTexts))), Documents{});
}

TEST_F(MdsTest, ColumnsOfAFixedSizeLieBehindTheSizesOfTheOthers) {
  auto sample = [](const std::string& id, const std::string& text) { return little_endian(text.size()) + id + text; };
  std::string file =
      write_shard({sample(little_endian(7, 8), "one"), sample(std::string(8, '\xff'), "two")},
                  R"({"column_encodings": ["int", "str"], "column_names": ["id", "text"], "column_sizes": [8, null]})");
  EXPECT_EQ(read(file), (Documents{"one", "two"}));
  EXPECT_EQ(read(file, {.text_field = "id"}), (Documents{"7", "-1"}));
}

TEST_F(MdsTest, ArraysOfIntegersAreTokens) {
  std::string ids = little_endian(5, 2) + little_endian(60000, 2), wide = little_endian(5) + little_endian(60000);
  std::vector<int32_t> expected = {5, 60000};
  EXPECT_EQ(tokens_of(write_column("ndarray:uint16:2", "4", {ids})), expected);
  EXPECT_EQ(tokens_of(write_column("ndarray:int32", "null", {mds_sample({"\x04\x02" + wide})})), expected);
  EXPECT_EQ(tokens_of(write_column("ndarray", "null", {mds_sample({std::string("\x10\x05\x02\0", 4) + ids})})),
            expected);
  std::string longer = write_column("ndarray:int32", "null", {mds_sample({"\x04\x03" + wide})});
  expect_user_error([&] { read(longer); }, {"a.mds sample 1", "expected 3 integers", "ndarray:int32"});
  std::string square = write_column("ndarray:uint16", "null", {mds_sample({"\x08\x01\x02" + ids})});
  expect_user_error([&] { read(square); }, {"sample 1", "one dimension"});
  std::string negative = write_column("ndarray:int32:1", "4", {std::string(4, '\xff')});
  expect_user_error([&] { read(negative); }, {"sample 1", "-1"});
}

TEST_F(MdsTest, NamesTheColumnsWhereOneIsMissingOrOfAnotherKind) {
  std::string file = write_shard(
      {}, R"({"column_encodings": ["pkl", "str"], "column_names": ["text", "body"], "column_sizes": [null, null]})");
  expect_user_error([&] { read(file, {.text_field = "none"}); },
                    {"a.mds", "column \"none\"", "\"text\" (pkl), \"body\" (str)", "--field"});
  expect_user_error([&] { read(file); }, {"column \"text\"", "got one of pkl", "\"body\" (str)"});
  std::string zeros = write_column("bytes", "null", {mds_sample({std::string(4, '\0')})});
  expect_user_error([&] { read(zeros); }, {"sample 1", "bytes of zero", "ndarray:int32"});
  SourceOptions options = {.notes = std::make_shared<SourceNotes>()};
  EXPECT_EQ(read(write_column("str", "null", {mds_sample({"caf\xe9"})}), options), Documents{"caf\xe9"});
  EXPECT_NE(options.notes->take().at(0).find("not UTF-8"), std::string::npos);
}

TEST_F(MdsTest, RefusesWhatDoesNotAddUp) {
  auto with = [&](size_t place, uint32_t number) {
    std::string shard = two_texts();
    return write("a.mds", shard.replace(place, 4, little_endian(number)));
  };
  uint32_t begin = uint32_t(4 * 5 + kTwoTexts.size());
  expect_user_error([&] { read(with(0, 0xffffffff)); }, {"a.mds", "4294967295 samples", "copy or download"});
  expect_user_error([&] { read(with(4, 0)); }, {"first begins at byte 0"});
  expect_user_error([&] { read(with(4, 0xffffff)); }, {"begin", "16777215"});
  expect_user_error([&] { read(with(8, 7)); }, {"sample 1 that ends before it begins"});
  expect_user_error([&] { read(with(16, 0xfffffff0)); }, {"sample 3", "at most", "got 42949"});
  expect_user_error([&] { read(with(16, begin + 36)); }, {"sample 3", "expected 15 bytes, got 14", "cut short"});
  expect_user_error([&] { read(with(16, begin + 26)); },
                    {"sample 3", "5 bytes, of which the sizes of its columns take 8"});
  expect_user_error([&] { read(with(begin, 0xfffffffc)); }, {"a.mds sample 1", "12 bytes", "4294967301"});
  expect_user_error([&] { read(with(begin + 4, 2)); }, {"a.mds sample 1", "12 bytes", "13"});  // another column's
  expect_user_error([&] { read(write("a.mds", two_texts() + "x")); }, {"behind 3 samples", "more bytes"});
  expect_user_error([&] { read(write("a.mds", mds_shard({}, "{}"))); }, {"no columns"});
  expect_user_error([&] { read(write("a.mds", "abc")); }, {"got 3 bytes"});
  std::string shard = two_texts();
  for (size_t size = 1; size < shard.size(); ++size)
    expect_user_error([&] { read(write("cut.mds", shard.substr(0, size))); }, {"cut.mds"});
}

TEST_F(MdsTest, TheIndexOfAFolderNamesItsShards) {
  std::string shard = two_texts();
  for (const char* name :
       {"shard.00000.mds", "shard.00001.mds.zstd", "old.mds", "part/shard.00000.mds", "shard.00000.mds.gz"})
    write(name, shard);
  std::string part = entry("part/./shard.00000.mds", shard.size());
  write_index("index.json", entry("shard.00000.mds", shard.size(), "shard.00000.mds.gz", 1) + ", " + part + ", " +
                                entry("shard.00001.mds", 1, "shard.00001.mds.zstd", shard.size()));
  EXPECT_EQ(found(), (Documents{"part/shard.00000.mds", "shard.00000.mds", "shard.00001.mds.zstd"}));
  EXPECT_EQ(passed_over_.total(), 2) << passed_over_.describe("");  // old.mds and what is there uncompressed, too
}

TEST_F(MdsTest, AFolderOfShardsIsNoPreparedOne) {
  std::string shard = two_texts();
  write("a.mds", shard);
  write_index("index.json", entry("a.mds", shard.size()));
  EXPECT_FALSE(is_prepared(folder_.path()));
  write("index.json", "{}");
  EXPECT_TRUE(is_prepared(folder_.path())) << "damaged, but who else names a file so?";
}

TEST_F(MdsTest, AnIndexOfAnotherProgramIsNone) {
  std::string shard = two_texts();
  write("a.mds", shard);
  for (const char* index : {"{}", "[\"shards\", \"mds\"]", "\"shards\" \"mds\"", R"({"shards": ["mds"]})"}) {
    write("index.json", index);
    EXPECT_EQ(found(), Documents{"a.mds"}) << index;
  }
}

TEST_F(MdsTest, RefusesAnIndexThatDoesNotFitItsFolder) {
  std::string shard = two_texts();
  write("in/a.mds", shard);
  write("out.mds", shard);
  auto refuses = [&](const std::string& entries, std::initializer_list<std::string> words) {
    write_index("in/index.json", entries);
    expect_user_error([&] { found("in"); }, words);
  };
  refuses(entry("../out.mds", shard.size()), {"index.json", "inside the folder", "../out.mds"});
  refuses(entry((folder_ / "out.mds").string(), shard.size()), {"inside the folder"});
  refuses(entry("x/../../out.mds", shard.size()), {"inside the folder"});
  refuses(entry("b.mds", 1), {"b.mds", "names, got nothing"});
  refuses(entry("a.mds", shard.size() + 1), {"a.mds", std::to_string(shard.size() + 1), "as its index says"});
  write("in/b.mds.br", shard);
  refuses(entry("b.mds", 1, "b.mds.br", shard.size()), {"b.mds.br", "zstd or gz", "got .br"});
  std::string wrong = entry("a.mds", shard.size());
  refuses(wrong + ", 1", {"index.json", "a list of objects"});
  refuses(wrong.replace(wrong.find("\"bytes\": "), 9, "\"bytes\": -"), {"index.json", "whole number", "bytes"});
}

}  // namespace
}  // namespace tokamak
