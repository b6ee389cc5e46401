#include "data/open_source.h"

#include "data/join_tokens.h"
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

TEST_F(OpenSourceTest, WarnsOfOddText) {
  EXPECT_NE(warn_of_text(write("a.csv", "a,b\n"), {}).find("a table"), std::string::npos);
  EXPECT_EQ(warn_of_text(write("a.csv", "a,b\n"), {.format = "text"}), "");
  EXPECT_EQ(warn_of_text(write("a.jsonl", "[{}]\n"), {}), "");
}

TEST_F(OpenSourceTest, RefusesWhatIsNoText) {
  std::string binary("PAR1\x15\0\x15\0", 8);
  expect_user_error([&] { read(write("a.parquet", binary)); }, {"a.parquet", "expected text", "Parquet", "JSONL"});
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
