#include "tests/data/sources/gzip_bytes.h"

#include <unistd.h>

#include "base/file.h"
#include "data/source_notes.h"
#include "data/sources/compression.h"
#include "data/sources/text.h"
#include "tests/data/sources/damage.h"
#include "tests/data/sources/source_test.h"
#include "tests/support/shared_data.h"

namespace tokamak {
namespace {

using GzipTest = SourceTest;

/// Bytes that do not compress well, so that there is something to damage.
std::string noise(size_t size) {
  std::string bytes;
  for (uint32_t state = 1; bytes.size() < size; state = state * 1664525 + 1013904223)
    bytes += char('0' + (state >> 24) % 64);
  return bytes;
}

TEST_F(GzipTest, ReadsTextAndJsonl) {
  EXPECT_EQ(read(write("a.txt.gz", gzip_bytes("plain\n"))), Documents{"plain\n"});
  EXPECT_EQ(read(write("a.jsonl.gz", gzip_bytes("{\"text\": \"1\"}\n{\"text\": \"2\"}\n"))), (Documents{"1", "2"}));
  EXPECT_EQ(read(write("named_otherwise.txt", gzip_bytes("plain\n"))), Documents{"plain\n"});
}

TEST_F(GzipTest, LooksAtTheContentAsInPlainFiles) {
  std::string lines = "{\"text\": \"1\"}\n{\"text\": \"2\"}\n";
  for (const char* name : {"a.json.gz", "a.gz", "a"}) {
    std::string path = write(name, gzip_bytes(lines));
    EXPECT_EQ(format_of(path, {}).name, "jsonl") << name;
    EXPECT_EQ(read(path), (Documents{"1", "2"})) << name;
  }
  for (auto [name, bytes, kind] : {std::tuple("a", "a,b\n1,2\n3,4\n5,6\n7,8\n", "is a table"),
                                   {"a.gz", "na\xefve", "not UTF-8"},
                                   {"a.txt.gz", lines.c_str(), "is JSON lines, and is taken as text"},
                                   {"a.json.gz", "{\n}", "is JSON"}}) {
    SourceOptions options = {.notes = std::make_shared<SourceNotes>()};
    look_ahead(write(name, gzip_bytes(bytes)), options);
    std::vector<std::string> notes = options.notes->take();
    ASSERT_EQ(notes.size(), 1u) << name;
    EXPECT_NE(notes[0].find(kind), std::string::npos) << notes[0];
  }
  expect_user_error([&] { read(write("a.gz", gzip_bytes(gzip_bytes("twice")))); }, {"a.gz", "compressed data"});
}

TEST_F(GzipTest, RefusesWhatIsNoTextInside) {
  std::string path = write("a.txt.gz", gzip_bytes(std::string(5000, '\0')));
  expect_user_error([&] { read(path); }, {"a.txt.gz", "expected text", "bytes of zero"});
}

TEST_F(GzipTest, ReadsSeveralMembersAsOne) {
  std::string first = noise(100'000), second = noise(70'001);
  std::string bytes = gzip_bytes(first) + gzip_bytes("") + gzip_bytes(second) + std::string(512, '\0');
  EXPECT_EQ(read(write("a.txt.gz", bytes)), Documents{first + second});
}

TEST_F(GzipTest, ReadsWhatComesSlowly) {
  std::string bytes = gzip_bytes("one ") + gzip_bytes("two");
  for (size_t at_once : {1, 2, 7})
    EXPECT_EQ(documents_of(*read_text(decompress(std::make_unique<DrippingBytes>(bytes, at_once)), {})),
              Documents{"one two"});
}

TEST_F(GzipTest, LongTextsComeInParts) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += fmt::format(" {}", i);
  std::string file = write("a.txt.gz", gzip_bytes(text));
  EXPECT_EQ(read(file, {.part_bytes = 10'000}), Documents{text});
  auto source = open_source(file, {.part_bytes = 10'000});
  Document document;
  ASSERT_TRUE(source->next(document));
  EXPECT_TRUE(document.continues);
  EXPECT_LE(document.text.size(), 10'000u);
  EXPECT_EQ(source->total_bytes(), int64_t(std::filesystem::file_size(file)));
  EXPECT_LT(source->bytes_read(), source->total_bytes());
}

TEST_F(GzipTest, ReadsAPipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  FileDescriptor reader(ends[0]);
  std::string bytes = gzip_bytes("piped");
  ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()), ssize_t(bytes.size()));
  ::close(ends[1]);
  EXPECT_EQ(read("-", {.stdin_fd = reader.get()}), Documents{"piped"});
}

TEST_F(GzipTest, EveryDamageIsFound) {
  std::string text = noise(60) + "\n" + noise(50);
  std::string bytes = gzip_bytes(noise(60) + "\n") + gzip_bytes(noise(50));
  auto read_damaged = [&](const std::string& damaged) { return read(write("a.txt.gz", damaged)); };
  ASSERT_EQ(read_damaged(bytes), Documents{text});
  size_t border = gzip_bytes(noise(60) + "\n").size();
  // A file that ends where its first member ends is a whole one.
  std::string second = bytes.substr(border);
  EXPECT_EQ(expect_no_silent_loss(second, Documents{noise(50)}, "a.txt.gz", read_damaged), int(second.size()));
  for (size_t size = border + 1; size < bytes.size(); ++size)
    EXPECT_THROW(read_damaged(bytes.substr(0, size)), UserError) << size;
  EXPECT_GT(expect_no_wrong_content(bytes, Documents{text}, "a.txt.gz", read_damaged), int(bytes.size() * 5));
}

TEST_F(GzipTest, NamesThePlaceOfDamage) {
  std::string bytes = gzip_bytes(noise(100'000));
  auto read_damaged = [&](const std::string& damaged) { return [&, damaged] { read(write("a.txt.gz", damaged)); }; };
  expect_user_error(read_damaged(bytes.substr(0, 5000)), {"a.txt.gz", "damage at byte 5000", "cut short", "again"});
  expect_user_error(read_damaged(bytes + "trailing"), {"damage at byte", "header"});
  expect_user_error(read_damaged("no gzip"), {"expected gzip data", "damage at byte 0", "does not begin"});
  expect_user_error(read_damaged(""), {"expected gzip data", "does not begin"});
  bytes[bytes.size() - 5] ^= 1;  // of the CRC
  expect_user_error(read_damaged(bytes), {"incorrect data check"});
}

TEST_F(GzipTest, ReadsRealFiles) {
  TOKAMAK_NEED_SHARED_DATA("books");
  Documents books = read(shared_data("books/classic-books-sample.txt.gz").string(), {.separator = "<|endoftext|>"});
  EXPECT_EQ(books.size(), 47u);
  size_t bytes = 0;
  for (const std::string& book : books) bytes += book.size() + std::string_view("<|endoftext|>\n").size();
  EXPECT_EQ(bytes, 17'866'476u);
  Documents items = read(shared_data("hellaswag_val_text.jsonl.gz").string(), {.text_field = "ctx"});
  EXPECT_EQ(items.size(), 10'042u);
}

}  // namespace
}  // namespace tokamak
