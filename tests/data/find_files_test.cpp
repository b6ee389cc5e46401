#include <sys/stat.h>

#include "data/passed_over.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

class FindFilesTest : public SourceTest {
 protected:
  /// What find_files gives for a path below the folder, without the folder's own path.
  Documents find(const std::string& input) {
    Documents files;
    for (const auto& path : find_files((folder_ / input).string(), {}))
      files.push_back(path.lexically_relative(folder_.path()).string());
    return files;
  }
};

TEST_F(FindFilesTest, AFolderIsReadInTheOrderOfItsPaths) {
  for (const char* name : {"b.md", "a/z.txt", "a/b/c.txt", "a.txt", "c.jsonl", "other.png", ".hidden.txt", ".git/x.md"})
    write(name, "x");
  write("empty.txt", "");
  Documents expected = {"a/b/c.txt", "a/z.txt", "a.txt", "b.md", "c.jsonl"};
  EXPECT_EQ(find(""), expected);
  EXPECT_EQ(find("a"), (Documents{"a/b/c.txt", "a/z.txt"}));
  EXPECT_EQ(find("other.png"), Documents{"other.png"});  // named by itself
}

TEST_F(FindFilesTest, CountsWhatItPassesOver) {
  for (const char* name : {"a.txt", "b.py", "c/d.py", "c/LICENSE", ".hidden.py", "d.json"}) write(name, "x");
  write("empty.txt", "");
  fs::create_directory_symlink("c", folder_ / "link");
  fs::create_symlink("gone.txt", folder_ / "dangling.txt");
  fs::create_symlink("loop.txt", folder_ / "loop.txt");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.txt").c_str(), 0600), 0);
  PassedOver passed_over;
  EXPECT_EQ(find_files(folder_.path().string(), {}, &passed_over), std::vector<fs::path>{folder_ / "a.txt"});
  EXPECT_EQ(passed_over.counts(), (std::map<std::string, int64_t>{{".json", 1},
                                                                  {".py", 2},
                                                                  {"empty", 1},
                                                                  {"hidden", 1},
                                                                  {"linked to a folder", 1},
                                                                  {"linked to nothing", 2},
                                                                  {"of a special kind", 1},
                                                                  {"without an ending", 1}}));
  EXPECT_EQ(find_files((folder_ / "**/*.py").string(), {}, &passed_over).size(), 2u);
  EXPECT_EQ(passed_over.counts(), (std::map<std::string, int64_t>{{"linked to a folder", 1}}));
}

TEST_F(FindFilesTest, JsonIsTakenIfItIsJsonLines) {
  std::string lines = "{\"text\": \"one\"}\n{\"text\": \"two\"}\n";
  write("a.json", lines);
  write("config.json", "{\n \"text\": \"one\"\n}\n");
  EXPECT_EQ(find(""), Documents{"a.json"});
}

// A pattern is named for what is text; what is no text would be refused.
TEST_F(FindFilesTest, AdvisesWhatWorks) {
  auto advice = [&] {
    PassedOver passed_over;
    find_files(folder_.path().string(), {}, &passed_over);
    return passed_over.describe("corpus");
  };
  write("a.txt", "x");
  EXPECT_EQ(advice(), "");
  write("b.pdf", "%PDF-1.7");
  EXPECT_NE(advice().find("passed over 1 file: 1 .pdf"), std::string::npos) << advice();
  EXPECT_NE(advice().find("is a PDF document: take the text out of it"), std::string::npos) << advice();
  EXPECT_EQ(advice().find("a pattern"), std::string::npos) << advice();
  write("c.py", "x");
  EXPECT_NE(advice().find("a pattern takes more, such as 'corpus/**/*.py'"), std::string::npos) << advice();
  fs::remove(folder_ / "a.txt");
  expect_user_error([&] { find(""); }, {"got none (", "1 .pdf", "is a PDF document"});
}

TEST_F(FindFilesTest, Patterns) {
  for (const char* name : {"a1.txt", "a2.txt", "b1.txt", "a3.md", "x/a1.txt", "x/y/a1.txt", "x/y/b.dat", "z[1].txt"})
    write(name, "x");
  EXPECT_EQ(find("a*.txt"), (Documents{"a1.txt", "a2.txt"}));
  EXPECT_EQ(find("?1.*"), (Documents{"a1.txt", "b1.txt"}));
  EXPECT_EQ(find("[!a]1.txt"), Documents{"b1.txt"});
  EXPECT_EQ(find("**/a1.txt"), (Documents{"a1.txt", "x/a1.txt", "x/y/a1.txt"}));
  EXPECT_EQ(find("x/**/a1.txt"), (Documents{"x/a1.txt", "x/y/a1.txt"}));
  EXPECT_EQ(find("*/a1.txt"), Documents{"x/a1.txt"});
  EXPECT_EQ(find("x/**"), (Documents{"x/a1.txt", "x/y/a1.txt"}));
  EXPECT_EQ(find("**/**/b.dat"), Documents{"x/y/b.dat"});
  EXPECT_EQ(find("z[1].txt"), Documents{"z[1].txt"});  // a file of that very name
  EXPECT_EQ(find("*"), (Documents{"a1.txt", "a2.txt", "a3.md", "b1.txt", "x/a1.txt", "x/y/a1.txt", "z[1].txt"}));
}

TEST_F(FindFilesTest, StandardInputIsItself) {
  EXPECT_EQ(find_files("-", {}), std::vector<std::filesystem::path>{"-"});
}

TEST_F(FindFilesTest, RefusesWhatHasNothing) {
  expect_user_error([&] { find("none"); }, {"none", "does not exist", "check the path"});
  expect_user_error([&] { find("*.txt"); }, {"*.txt", "got none", "check the pattern"});
  expect_user_error([&] { find_files("", {}); }, {"empty"});
  expect_user_error([&] { find(write("empty.txt", "").substr(folder_.path().string().size() + 1)); },
                    {"empty.txt", "an empty file", "name another file"});
  expect_user_error([&] { find(""); }, {"none of them empty", "got none", "1 empty"});
  TemporaryFolder empty;
  expect_user_error([&] { find_files(empty.path().string(), {}); },
                    {"*.txt, *.md, *.jsonl", "got none", empty.path().string()});
}

}  // namespace
}  // namespace tokamak
