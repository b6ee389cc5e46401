// Mistakes with what data comes from, through the program itself.
#include <gtest/gtest.h>

#include "tests/support/expect_refused.h"
#include "tests/support/quick_file.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

class DataSources : public testing::Test {
 protected:
  void expect_prepare_refused(const std::vector<std::string>& arguments, std::initializer_list<std::string> pieces) {
    std::vector<std::string> all = {"prepare"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    expect_refused(run_program(folder_.path(), all), pieces);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "data" / "index.json"));
  }

  void write(const std::string& name, std::string_view content) { write_file_quickly(folder_ / name, content); }

  TemporaryFolder folder_;
};

TEST_F(DataSources, PatternThatMatchesNothing) {
  write("a.txt", "text");
  expect_prepare_refused({"*.jsonl"}, {"files that match *.jsonl", "got none", "check the pattern"});
}

TEST_F(DataSources, FileThatOnlyClaimsToBeCompressed) {
  write("a.txt.gz", "not compressed at all");
  expect_prepare_refused({"a.txt.gz"}, {"a.txt.gz", "expected gzip data", "does not begin", "again"});
}

TEST_F(DataSources, BinaryFile) {
  write("model.pt", std::string("PK\3\4\0\0\0\0", 8));
  expect_prepare_refused({"model.pt"}, {"model.pt", "expected text", "a zip archive", "unpack it"});
}

TEST_F(DataSources, EscapeSequencesDoNotReachTheTerminal) {
  write("a\x1b[31m.jsonl", "{\"text\": \"one\"}\n\x1b]0;mine\a\n");
  ProgramResult result = run_program(folder_.path(), {"prepare", "a\x1b[31m.jsonl"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("a\\x1b[31m.jsonl line 2"), std::string::npos) << result.err;
}

TEST_F(DataSources, LineThatIsNoJson) {
  write("a.jsonl", "{\"text\": \"one\"}\nplain text\n");
  expect_prepare_refused({"a.jsonl"}, {"a.jsonl line 2", "expected a JSON object", "got plain text", "--skip-bad"});
}

TEST_F(DataSources, LineWithoutTheField) {
  write("a.jsonl", "{\"text\": \"one\"}\n{\"body\": \"two\"}\n");
  expect_prepare_refused({"a.jsonl"}, {"a.jsonl line 2", "expected a text field \"text\"", "--field", "--skip-bad"});
}

TEST_F(DataSources, TarCutShort) {
  write("a.tar", std::string(700, 'x'));
  expect_prepare_refused({"a.tar"}, {"a.tar", "expected"});
}

}  // namespace
}  // namespace tokamak
