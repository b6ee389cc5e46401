#include "data/open_source.h"

#include "base/file.h"
#include "data/join_tokens.h"
#include "data/source_notes.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

using OpenSourceTest = SourceTest;

TEST_F(OpenSourceTest, FormatsByName) {
  auto format = [](const char* path, const char* wanted = "auto") {
    return std::string(format_of(path, {.format = wanted}).name);
  };
  EXPECT_EQ(format("a.txt"), "text");
  EXPECT_EQ(format("a.md.gz"), "text");
  EXPECT_EQ(format("a.jsonl"), "jsonl");
  EXPECT_EQ(format("a.ndjson.zst"), "jsonl");
  EXPECT_EQ(format("a.log"), "text");
  EXPECT_EQ(format("-"), "text");
  EXPECT_EQ(format("-", "jsonl"), "jsonl");
  EXPECT_EQ(format("a.jsonl", "text"), "text");
  expect_user_error([&] { format("a.txt", "jsnl"); }, {"expected one of auto, text, jsonl", "got jsnl"});
}

TEST_F(OpenSourceTest, EveryFormatSaysWhatItIs) {
  for (const SourceFormatInfo& info : source_formats()) {
    EXPECT_FALSE(info.description.empty()) << info.name;
    EXPECT_TRUE(info.documents || info.tokens) << info.name;
    EXPECT_EQ(&format_of("a", {.format = std::string(info.name)}), &info);
  }
}

TEST_F(OpenSourceTest, NamesThePackageOfAnAbsentLibrary) {
  int absent = 0;
  for (const SourceFormatInfo& info : source_formats()) {
    if (info.missing.empty() || !info.documents) continue;
    ++absent;
    expect_user_error(
        [&] { read(write("a", "x"), {.format = std::string(info.name)}); },
        {"expected a program that reads", std::string(info.name), "install " + std::string(info.missing)});
  }
  if (absent == 0) GTEST_SKIP() << "all libraries are built in";
}

TEST_F(OpenSourceTest, AByteOrderMarkIsNoText) {
  std::string mark = "\xef\xbb\xbf";
  EXPECT_EQ(read(write("a.txt", mark + "text")), Documents{"text"});
  EXPECT_EQ(read(write("a.jsonl", mark + "{\"text\": \"one\"}\n")), Documents{"one"});
}

constexpr const char* kTwoLines = "{\"text\": \"one\"}\n{\"text\": \"two\"}\n";

TEST_F(OpenSourceTest, JsonLinesUnderAnyNameButThatOfText) {
  for (const char* name : {"a.json", "a", "a.dat"}) {
    std::string path = write(name, kTwoLines);
    EXPECT_EQ(format_of(path, {}).name, "jsonl") << name;
    SourceOptions options = {.notes = std::make_shared<SourceNotes>()};
    EXPECT_EQ(read(path, options), (Documents{"one", "two"})) << name;
    EXPECT_EQ(options.notes->take().size(), size_t(name != std::string("a.json"))) << "told where no name says it";
    EXPECT_EQ(read(path, {.format = "text"}), Documents{kTwoLines}) << name;
  }
  SourceOptions options = {.notes = std::make_shared<SourceNotes>()};
  EXPECT_EQ(read(write("a.txt", kTwoLines), options), Documents{kTwoLines});
  EXPECT_NE(options.notes->take().at(0).find("a.txt is JSON lines, and is taken as text"), std::string::npos);
}

TEST_F(OpenSourceTest, JsonLinesOfStandardInput) {
  std::string path = write("lines", kTwoLines);
  FileDescriptor file = open_to_read(path);
  SourceOptions options = {.stdin_fd = file.get(), .notes = std::make_shared<SourceNotes>()};
  EXPECT_EQ(read("-", options), (Documents{"one", "two"}));
  EXPECT_NE(options.notes->take().at(0).find("standard input is JSON lines: the field \"text\""), std::string::npos);
}

TEST_F(OpenSourceTest, WarnsOfOddText) {
  auto warnings = [&](const std::string& path, SourceOptions options = {}) {
    options.notes = std::make_shared<SourceNotes>();
    look_ahead(path, options);
    std::vector<std::string> notes = options.notes->take();
    return notes.empty() ? "" : notes[0];
  };
  std::string table = "a,b\n1,2\n3,4\n5,6\n7,8\n";
  EXPECT_NE(warnings(write("table", table)).find("warning: " + (folder_ / "table").string() + " is a table"),
            std::string::npos);
  EXPECT_EQ(warnings(write("table", table), {.format = "text"}), "");
  EXPECT_EQ(warnings(write("a.jsonl", "[{}]\n")), "");
}

TEST_F(OpenSourceTest, RefusesWhatIsNoText) {
  std::string binary("PAR1\x15\0\x15\0", 8);
  expect_user_error([&] { read(write("a.dat", binary)); }, {"a.dat", "expected text", "Parquet", "*.parquet"});
  expect_user_error([&] { read(write("a.txt", std::string("a\0b", 3))); }, {"a.txt", "bytes of zero", "format"});
  EXPECT_EQ(read(write("a.parquet", binary), {.format = "text"}), Documents{binary});
  EXPECT_EQ(read(write("a.log", "caf\xe9")), Documents{"caf\xe9"});
}

TEST_F(OpenSourceTest, RefusesCompressedTokens) {
  std::string file = write("a.bin.gz", "\x1f\x8b");
  expect_user_error([&] { read(file); }, {"a.bin.gz", "expected an uncompressed file, as bin", "unpack it"});
  expect_user_error([&] { open_tokens({file}, {}); },
                    {"a.bin.gz", "expected an uncompressed file, as bin", "unpack it"});
}

TEST_F(OpenSourceTest, TextIsNotTokens) {
  expect_user_error([&] { open_tokens({write("a.txt", "x")}, {}); }, {"a.txt", "expected a file of tokens", "prepare"});
}

/// Tokens counted up from a number.
class Counting : public TokenArray {
 public:
  Counting(int32_t first, int64_t size) : first_(first), size_(size) {}
  int64_t size() const override { return size_; }
  void read(int64_t begin, std::span<int32_t> out) const override {
    for (int32_t& token : out) token = first_ + int32_t(begin++);
    EXPECT_LE(begin, size_);
  }
  Place place(int64_t at) const override { return {std::to_string(first_), at, size_ - at}; }
  std::vector<FileFingerprint> fingerprints() const override { return {{.path = std::to_string(first_)}}; }

 private:
  int32_t first_;
  int64_t size_;
};

TEST(JoinTokens, IsOneArray) {
  std::vector<std::unique_ptr<TokenArray>> arrays;
  int32_t first = 0;
  for (int64_t size : {3, 0, 5, 2}) {
    arrays.push_back(std::make_unique<Counting>(first, size));
    first += int32_t(size);
  }
  auto joined = join_tokens(std::move(arrays));
  ASSERT_EQ(joined->size(), 10);
  for (int64_t begin = 0; begin <= 10; ++begin)
    for (int64_t end = begin; end <= 10; ++end) {
      std::vector<int32_t> out(static_cast<size_t>(end - begin));
      joined->read(begin, out);
      for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], begin + int64_t(i));
    }
  EXPECT_EQ(joined->place(2).path, "0");
  EXPECT_EQ(joined->place(3).path, "3");
  EXPECT_EQ(joined->place(9).token, 1);
  EXPECT_EQ(joined->place(9).left, 1);
  EXPECT_EQ(joined->fingerprints().size(), 4u);
}

}  // namespace
}  // namespace tokamak
