#include "data/sources/text.h"

#include <unistd.h>

#include <random>

#include "base/file.h"
#include "data/pretokenizer.h"
#include "data/word_border.h"
#include "tests/data/sources/source_test.h"
#include "tests/support/shared_data.h"

namespace tokamak {
namespace {

using TextSourceTest = SourceTest;

Documents parts_of(const std::string& path, const SourceOptions& options) {
  Documents parts;
  auto source = open_source(path, options);
  for (Document document; source->next(document);) parts.emplace_back(document.text);
  return parts;
}

TEST_F(TextSourceTest, AFileIsOneDocument) {
  std::string bytes = "no UTF-8: \xff\xfe!";
  EXPECT_EQ(read(write("a.txt", bytes)), Documents{bytes});
  EXPECT_EQ(read(write("b.md", "# B\n\ntext\n")), Documents{"# B\n\ntext\n"});
}

TEST_F(TextSourceTest, ReadsStandardInput) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  FileDescriptor reader(ends[0]);
  ASSERT_EQ(::write(ends[1], "piped", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read("-", {.stdin_fd = reader.get()}), Documents{"piped"});
}

TEST_F(TextSourceTest, SplitsAtSeparators) {
  std::string file = write("a.txt", "<|x|>one\n<|x|>\ntwo <|x|>\r\n<|x|>\n\nthree<|x|>");
  EXPECT_EQ(read(file, {.separator = "<|x|>"}), (Documents{"one\n", "two ", "\nthree"}));
  EXPECT_EQ(read(file).size(), 1u);
  EXPECT_EQ(read(write("b.txt", "<|x|>\n<|x|>"), {.separator = "<|x|>"}), Documents{});
}

TEST_F(TextSourceTest, SeparatorsDoNotDependOnTheSizeOfParts) {
  for (const std::string separator : {"<<<s>", " <s> "}) {
    std::string text;
    for (int i = 0; i < 40; ++i)
      text += std::string(size_t(i % 23), 'w') + (i % 2 ? " x <<" : "") + (i % 3 ? "" : separator) +
              (i % 5 ? "\n" : "tail");
    SourceOptions options = {.separator = separator};
    Documents whole = documents_of(*read_text(std::make_unique<DrippingBytes>(text, text.size()), options));
    EXPECT_GT(whole.size(), 10u);
    for (options.part_bytes = 1; options.part_bytes < 70; ++options.part_bytes)
      for (size_t at_once : {1, 2, 5, 10'000})
        EXPECT_EQ(documents_of(*read_text(std::make_unique<DrippingBytes>(text, at_once), options)), whole)
            << "parts of " << options.part_bytes << " bytes, " << at_once << " at once";
  }
}

TEST_F(TextSourceTest, PartsEndWhereWordsEnd) {
  std::string text = "one  two\n three. \tfour\u00a0 five,  six";
  EXPECT_EQ(parts_of(write("a.txt", text), {.part_bytes = 9}),
            (Documents{"one", "  two\n three.", " \tfour\u00a0 five,", "  six"}));
  std::string word(100, 'w');  // no place: between characters, after 8 parts
  EXPECT_EQ(parts_of(write("b.txt", word), {.part_bytes = 10}), (Documents{word.substr(0, 80), word.substr(80)}));
  std::string accents;
  for (int i = 0; i < 50; ++i) accents += "\u00e9";
  EXPECT_EQ(parts_of(write("c.txt", "." + accents), {.part_bytes = 10}).at(0).size(), 79u);
}

Documents words_of(std::string_view text, const PretokenizerInfo& pretokenizer) {
  Documents words;
  for (size_t at = 0, end = 0; at < text.size(); at = end) {
    end = pretokenizer.word_end(text, at);
    words.emplace_back(text.substr(at, end - at));
  }
  return words;
}

/// The words of the parts, one after the other, are those of the whole, whatever cuts text into words.
void expect_words_kept(const std::string& text, const Documents& parts) {
  for (const PretokenizerInfo& pretokenizer : pretokenizers()) {
    Documents joined;
    for (const std::string& part : parts)
      for (std::string& word : words_of(part, pretokenizer)) joined.push_back(std::move(word));
    EXPECT_EQ(joined, words_of(text, pretokenizer)) << pretokenizer.name << ": " << text;
  }
}

TEST_F(TextSourceTest, PartsHaveTheWordsOfTheWhole) {
  TOKAMAK_NEED_SHARED_DATA("wikitext-2/test.txt");
  std::string text = read_file(shared_data("wikitext-2/test.txt")).substr(0, 200'000);
  Documents parts = parts_of(write("a.txt", text), {.part_bytes = 50});
  EXPECT_GT(parts.size(), 3000u);
  expect_words_kept(text, parts);
}

TEST(LastCut, CutsNoWord) {
  constexpr std::string_view kPieces[] = {" ", " ", "\n", "\r", "\t", "\x1c", "\u00a0", "\u3000", "\u4e2d", "\u00e9",
                                          "a", "Z", "1",  ".",  "'s", "'",    "/",      "!",      "\u0301", "\xff"};
  std::mt19937 random(1);
  int cuts = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (size_t i = 0; i < 12; ++i) text += kPieces[random() % std::size(kPieces)];
    size_t at = last_cut(text);
    if (at == text.npos) continue;
    ASSERT_LT(at, text.size());
    ++cuts;
    expect_words_kept(text, {text.substr(0, at), text.substr(at)});
    if (HasFailure()) return;
  }
  EXPECT_GT(cuts, 5000);
}

TEST_F(TextSourceTest, TellsHowFarItIs) {
  std::string file = write("a.txt", std::string(100, 'x'));
  auto source = open_source(file, {});
  EXPECT_EQ(source->name(), file);
  EXPECT_EQ(source->total_bytes(), 100);
  documents_of(*source);
  EXPECT_EQ(source->bytes_read(), 100);
}

TEST_F(TextSourceTest, RefusesWhatCannotBeRead) {
  expect_user_error([&] { read((folder_ / "none.txt").string()); }, {"none.txt", "No such file", "check the path"});
  expect_user_error([&] { read(folder_.path().string()); }, {folder_.path().string(), "folder"});
}

}  // namespace
}  // namespace tokamak
