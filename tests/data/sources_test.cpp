#include "data/sources.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

using Documents = std::vector<std::string>;

class SourcesTest : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view content) {
    make_folder((folder_ / name).parent_path());
    write_file_atomic(folder_ / name, content);
    return (folder_ / name).string();
  }

  static Documents read(SourceOptions options) {
    Sources sources(std::move(options));
    Documents documents;
    for (int round = 0; round < 2; ++round) {  // every source can be read again
      documents.clear();
      sources.for_each([&](std::string_view document) { documents.emplace_back(document); });
    }
    return documents;
  }

  TemporaryFolder folder_;
};

TEST_F(SourcesTest, AFileIsOneDocument) {
  std::string bytes("no UTF-8: \xff\xfe\0!", 14);
  EXPECT_EQ(read({.inputs = {write("a.txt", bytes)}}), Documents{bytes});
}

TEST_F(SourcesTest, AFolderIsReadInTheOrderOfItsPaths) {
  write("b.md", "B");
  write("a/z.txt", "AZ");
  write("a/b/c.txt", "ABC");
  write("c.jsonl", "{\"text\": \"C1\"}\n{\"text\": \"C2\"}\n");
  write("ignored.png", "PNG");
  write("empty.txt", "");
  EXPECT_EQ(read({.inputs = {folder_.path().string()}}), (Documents{"ABC", "AZ", "B", "C1", "C2"}));
}

TEST_F(SourcesTest, JsonlHasADocumentOnEachLine) {
  std::string file =
      write("a.jsonl", "{\"body\": \"one\\n\\u00e9\", \"text\": 1}\r\n\n{\"body\": \"\"}\n{\"body\": \"two\"}");
  EXPECT_EQ(read({.inputs = {file}, .text_field = "body"}), (Documents{"one\n\u00e9", "two"}));
  EXPECT_EQ(read({.inputs = {file}, .format = SourceFormat::kText}).size(), 1u);
}

TEST_F(SourcesTest, NamesTheLineWithoutTheField) {
  std::string file = write("a.jsonl", "{\"text\": \"one\"}\n\n{\"body\": \"two\"}\n");
  expect_user_error([&] { read({.inputs = {file}}); }, {"a.jsonl line 3", "\"text\"", "none", "--field"});
  file = write("b.jsonl", "{\"text\": 7}\n");
  expect_user_error([&] { read({.inputs = {file}}); }, {"b.jsonl line 1", "got 7"});
  file = write("c.jsonl", "{\"text\": \"x\"}\n{\"text\": \"cut");
  expect_user_error([&] { read({.inputs = {file}}); }, {"c.jsonl line 2", "expected a JSON object"});
}

TEST_F(SourcesTest, ReadsStandardInput) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  FileDescriptor reader(ends[0]);
  ASSERT_EQ(::write(ends[1], "piped", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read({.inputs = {"-"}, .stdin_fd = reader.get()}), Documents{"piped"});
}

TEST_F(SourcesTest, RefusesWhatHasNoText) {
  expect_user_error([&] { read({}); }, {"got nothing"});
  expect_user_error([&] { read({.inputs = {"/no/such/file"}}); }, {"/no/such/file", "does not exist"});
  expect_user_error([&] { read({.inputs = {write("a.txt", "")}}); }, {"a.txt", "empty file"});
  expect_user_error([&] { read({.inputs = {folder_.path().string()}}); }, {"1 empty files"});
  TemporaryFolder empty;
  expect_user_error([&] { read({.inputs = {empty.path().string()}}); }, {".txt, .md or .jsonl", empty.path().string()});
}

}  // namespace
}  // namespace tokamak
