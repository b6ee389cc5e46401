#include "data/source_notes.h"
#include "tests/data/sources/damage.h"
#include "tests/data/sources/source_test.h"
#include "tests/data/sources/tar_bytes.h"
#include "tests/data/sources/token_test.h"

namespace tokamak {
namespace {

using WebDatasetTest = TokenTest;

TEST_F(WebDatasetTest, ReadsItsMembersInOrder) {
  std::string bytes = tar_member("shard/", "", '5') + tar_member("shard/b.txt", "B") +
                      tar_member("shard/b.png", std::string(1000, '\0')) + tar_member("shard/a.md", "A") +
                      tar_member("shard/empty.txt", "") + tar_member("a.json", "{\n \"text\": \"J\"\n}\n") +
                      tar_member("c.jsonl", "{\"text\": \"1\"}\n{\"text\": \"2\"}") + tar_member("l.txt", "", '2') +
                      tar_member("._b.txt", "notes of a file system") + tar_end();
  EXPECT_EQ(read(write("a.tar", bytes)), (Documents{"B", "A", "J", "1", "2"}));
  EXPECT_EQ(read(write("a.tar", bytes), {.members = {"a.*"}}), (Documents{"A", "J"}));
  EXPECT_EQ(read(write("none.tar", tar_end())), Documents{});
}

TEST_F(WebDatasetTest, LooksAtTheContentOfMembers) {
  std::string lines = "{\"text\": \"1\"}\n{\"text\": \"2\"}\n";
  std::string bytes = tar_member("a.json", lines) + tar_member("b", lines) + tar_member("c.txt", lines) +
                      tar_member("d.txt", "na\xefve") + tar_member("e.csv", "a b\n") + tar_end();
  SourceOptions options = {.members = {"*"}, .notes = std::make_shared<SourceNotes>()};
  EXPECT_EQ(read(write("a.tar", bytes), options), (Documents{"1", "2", "1", "2", lines, "na\xefve", "a b\n"}));
  std::vector<std::string> notes = options.notes->take();
  ASSERT_EQ(notes.size(), 4u);
  for (auto [i, piece] : {std::pair(0, "a.tar member b is JSON lines: the field"),
                          {1, "member c.txt is JSON lines, and is"},
                          {2, "member d.txt is not UTF-8"},
                          {3, "member e.csv is a table"}})
    EXPECT_NE(notes[size_t(i)].find(piece), std::string::npos) << notes[size_t(i)];
  expect_user_error([&] { read(write("a.tar", tar_member("a.txt", std::string("a\0b", 3)) + tar_end())); },
                    {"a.tar member a.txt", "expected text", "bytes of zero"});
}

TEST_F(WebDatasetTest, TellsOfSamplesWithSeveralMembers) {
  std::string bytes = tar_member("s/1.txt", "A") + tar_member("s/2.txt", "B") + tar_member("s/1.png", "") +
                      tar_member("s/1.json", "{\"text\": \"A\"}") + tar_member("s/2.json", "{\"text\": \"B\"}") +
                      tar_end();
  SourceOptions options = {.notes = std::make_shared<SourceNotes>()};
  EXPECT_EQ(read(write("a.tar", bytes), options), (Documents{"A", "B", "A", "B"}));
  std::vector<std::string> notes = options.notes->take();
  ASSERT_EQ(notes.size(), 1u);
  for (const char* piece : {"a.tar: the members s/1.txt and s/1.json of one sample", "--members='*.txt'"})
    EXPECT_NE(notes[0].find(piece), std::string::npos) << notes[0];
  EXPECT_NE(options.notes->totals().at(0).find("passed over members of archives: 1 .png"), std::string::npos);
  options = {.members = {"*.txt"}, .notes = std::make_shared<SourceNotes>()};
  EXPECT_EQ(read(write("a.tar", bytes), options), (Documents{"A", "B"}));
  EXPECT_TRUE(options.notes->take().empty());
}

TEST_F(WebDatasetTest, LongMembersComeInParts) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += fmt::format(" {}", i);
  std::string bytes = tar_member("a.txt", text) + tar_member("b.txt", "B") + tar_end();
  EXPECT_EQ(read(write("a.tar", bytes), {.part_bytes = 5000}), (Documents{text, "B"}));
}

TEST_F(WebDatasetTest, NpyMembersAreDocumentsOfTokens) {
  Ids ids = some_ids(5000);
  std::string bytes = tar_member("a.npy", npy_uint16(ids)) + tar_member("b.npy", npy_uint16({})) +
                      tar_member("c.npy", npy_file("'<i8'", "(2,)", packed<int64_t>({7, 70'000}))) + tar_end();
  std::string path = write("a.tar", bytes);
  EXPECT_EQ(token_documents(path), std::vector<Ids>({ids, {7, 70'000}}));
  EXPECT_EQ(token_documents(path, {.part_bytes = 400}), std::vector<Ids>({ids, {7, 70'000}}));
  auto refused = [&](const std::string& npy, std::initializer_list<std::string> pieces) {
    expect_user_error([&] { token_documents(write("a.tar", tar_member("a.npy", npy) + tar_end())); }, pieces);
  };
  std::string one = npy_uint16({1, 2, 3});
  refused(one.substr(0, one.size() - 1), {"a.tar member a.npy", "3 elements of 2 bytes", "the end before"});
  refused(one + "x", {"a.tar member a.npy", "3 elements", "more"});
  refused("text", {"a.tar member a.npy", "magic"});
}

TEST_F(WebDatasetTest, ReadsArchivesOneAfterTheOther) {
  std::string bytes = tar_member("a.txt", "A") + tar_end() + tar_member("b.txt", "B") + tar_end();
  EXPECT_EQ(read(write("a.tar", bytes)), (Documents{"A", "B"}));
}

TEST_F(WebDatasetTest, ACutIsAlwaysFound) {
  std::string bytes = tar_member("a.txt", "one") + tar_member("x.cls", std::string(512, '\0')) +
                      tar_member("b.json", "{\"text\": \"two\"}") + tar_member("c.txt", std::string(20, 'c')) +
                      tar_end();
  Documents whole = {"one", "two", std::string(20, 'c')};
  auto read_damaged = [&](const std::string& damaged) { return read(write("a.tar", damaged)); };
  ASSERT_EQ(read_damaged(bytes), whole);
  EXPECT_GE(expect_no_silent_loss(bytes, whole, "a.tar", read_damaged), int(bytes.size()) - 1024);
}

// libarchive would fill a hole of any size with zeros.
TEST_F(WebDatasetTest, SparseMembersAreRefused) {
  auto sparse = [](const std::string& size, const std::string& map) {
    std::string records = pax_record("GNU.sparse.size", size) + pax_record("GNU.sparse.map", map);
    return tar_member("x", records, 'x') + tar_member("s.txt", "12345", '0') + tar_end();
  };
  for (const char* map : {"4000000000000000,5", "0,2,4000000000000000,3", "0,5"})
    expect_user_error([&] { read(write("a.tar", sparse("4000000000000005", map))); },
                      {"a.tar", "sparse one s.txt", "--sparse"});
  EXPECT_EQ(read(write("a.tar", sparse("5", "0,2,2,3"))), Documents{"12345"}) << "no hole: a plain file";
}

TEST_F(WebDatasetTest, NamesTheDamagedMember) {
  auto read_bytes = [&](const std::string& damaged) { return [&, damaged] { read(write("a.tar", damaged)); }; };
  std::string one = tar_member("one.txt", std::string(2000, 'x')), two = tar_member("two.txt", "2");
  expect_user_error(read_bytes((one + two).substr(0, 1500)), {"a.tar", "member one.txt", "runcated", "again"});
  expect_user_error(read_bytes(one + two), {"a.tar", "member two.txt", "mark of the end is missing"});
  expect_user_error(read_bytes("no archive at all, and not compressed either"), {"a.tar", "at its beginning"});
  two[100] ^= 1;
  expect_user_error(read_bytes(one + two + tar_end()), {"a.tar", "behind member one.txt", "Damaged tar"});
  expect_user_error(read_bytes(tar_member("k.json", "{\"caption\": 1}") + tar_end()),
                    {"a.tar member k.json", "text field \"text\"", "got none"});
  expect_user_error(read_bytes(tar_member("k.jsonl", "{\"text\": \"1\"}\n{") + tar_end()),
                    {"a.tar member k.jsonl line 2", "expected a JSON object"});
}

}  // namespace
}  // namespace tokamak
