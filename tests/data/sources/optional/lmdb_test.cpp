#include <fmt/core.h>

#include "config/config.h"
#include "data/corpus.h"
#include "data/source_notes.h"
#include "tests/data/sources/mutations.h"
#include "tests/data/sources/optional/lmdb_writer.h"
#include "tests/data/sources/token_test.h"

namespace tokamak {
namespace {

class LmdbTest : public TokenTest {
 protected:
  std::string write_entries(const LmdbEntries& entries, const std::string& name = "a.mdb") {
    write_lmdb((folder_ / name).string(), entries);
    return (folder_ / name).string();
  }

  /// Values of the given lengths, of uint16 tokens in order.
  std::string write_ids(const Ids& ids, const std::vector<size_t>& lengths) {
    LmdbEntries entries;
    size_t begin = 0;
    for (size_t i = 0; begin < ids.size(); ++i) {
      size_t end = std::min(ids.size(), begin + lengths[i % lengths.size()]);
      Ids part(ids.begin() + long(begin), ids.begin() + long(end));
      entries.emplace_back(fmt::format("{:08}", entries.size()), packed_ids<uint16_t>(part));
      begin = end;
    }
    return write_entries(entries);
  }
};

TEST_F(LmdbTest, ReadsTokens) {
  expect_tokens({write_ids(some_ids(5), {1, 2})}, some_ids(5));
  Ids ids = some_ids(400'000);
  for (const auto& lengths : std::vector<std::vector<size_t>>{{1025}, {1, 0, 5000, 70'000}, {400'000}})
    expect_tokens({write_ids(ids, lengths)}, ids);
  expect_tokens({write_entries({})}, {});
}

TEST_F(LmdbTest, ReadsUint32AndFolders) {
  std::filesystem::create_directory(folder_ / "db.lmdb");
  std::string path = write_entries({{"a", packed_ids<uint32_t>({100'000, 2})}}, "db.lmdb/data.mdb");
  write("db.lmdb/lock.mdb", "a lock");
  EXPECT_EQ(find_files((folder_ / "db.lmdb").string(), {}), std::vector<std::filesystem::path>{path});
  expect_tokens({path}, {100'000, 2}, {.token_type = "uint32"});
  EXPECT_EQ(open_tokens({folder_ / "db.lmdb"}, {.token_type = "uint32"})->size(), 2);
}

TEST_F(LmdbTest, TrainsOnAFolder) {
  std::filesystem::create_directory(folder_ / "db");
  write_lmdb((folder_ / "db/data.mdb").string(), {{"a", packed_ids<uint16_t>(some_ids(17))}});
  RunConfig config;
  config.model = {.context = 4, .vocab = 1 << 16};
  config.data.path = {(folder_ / "db").string()};
  EXPECT_EQ(open_training_data(config, nullptr).windows(), 4);
}

TEST_F(LmdbTest, SeveralThreadsReadAtOnce) {
  Ids ids = some_ids(300'000);
  auto tokens = open_tokens({write_ids(ids, {1000, 37})}, {});
  expect_threads_agree(*tokens, ids);
}

TEST_F(LmdbTest, TellsOfOddValues) {
  SourceOptions options = {.token_type = "uint16", .notes = std::make_shared<SourceNotes>()};
  read(write_entries({{"1", "good"}, {"2", "na\xefve"}}), options);
  std::vector<std::string> notes = options.notes->take();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("a.mdb key 2 is not UTF-8"), std::string::npos) << notes[0];
  open_tokens({write_entries({{"1", packed_ids<uint32_t>(Ids(100, 300))}})}, options);
  notes = options.notes->take();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("data.token_type=uint32"), std::string::npos) << notes[0];
}

TEST_F(LmdbTest, TextsAreDocumentsInTheOrderOfKeys) {
  std::string large(20'000, 'x');
  std::string path = write_entries({{"b", "two"}, {"a", "one"}, {"c", ""}, {"d", large}, {"e", "{braces} inside"}});
  EXPECT_EQ(read(path), Documents({"one", "two", large, "{braces} inside"}));
  EXPECT_EQ(read(write_entries({{"a", ""}})), Documents());
  EXPECT_EQ(read(write_entries({})), Documents());
}

TEST_F(LmdbTest, ObjectsAreDocumentsByTheirField) {
  std::string path =
      write_entries({{"1", R"({"text": "one", "id": 1})"}, {"2", R"({"text": ""})"}, {"3", R"({"text": "three"})"}});
  EXPECT_EQ(read(path), Documents({"one", "three"}));
  expect_user_error([&] { read(path, {.text_field = "body"}); }, {"a.mdb key 1", "body"});
  expect_user_error([&] { read(write_entries({{"1", R"({"text": "one"})"}, {"2", "plain"}})); }, {"a.mdb key 2"});
}

TEST_F(LmdbTest, TokensAreDocumentsWhereTheyAreNamed) {
  std::string path = write_entries({{"1", packed_ids<uint16_t>({1, 2})}, {"2", ""}, {"3", packed_ids<uint16_t>({3})}});
  EXPECT_EQ(token_documents(path, {.format = "lmdb-tokens"}), std::vector<Ids>({{1, 2}, {3}}));
  expect_user_error([&] { read(path); }, {"a.mdb key 1", "zero bytes", "lmdb-tokens"});
}

TEST_F(LmdbTest, RefusesOtherShapes) {
  expect_refused(write_entries({{"a", "12"}, {std::string("\0\1", 2), "123"}}),
                 {"a.mdb", "multiple of 2 bytes", "got 3 bytes under the key 0x0001"});
  std::string path = (folder_ / "a.mdb").string();
  write_lmdb(path, {{"a", "12"}}, "train");
  expect_refused(path, {"a.mdb", "main database", "named databases", "train"});
  write_lmdb(path, {{"a", "12"}, {"a", "13"}}, nullptr, MDB_DUPSORT);
  expect_refused(path, {"a.mdb", "one value for each key"});
  expect_refused(path, {"uint16 or uint32", "int8"}, {.token_type = "int8"});
  expect_refused(write_entries({{"a", std::string(32, 'x')}}), {"a.mdb", "got text under the key a", "prepare"});
  expect_tokens({write_entries({{"a", std::string(30, 'x')}})}, Ids(15, 0x7878));
  auto tokens = open_tokens({write_entries({{"a", packed<uint32_t>({1, 0xffffffff})}})}, {.token_type = "uint32"});
  Ids out(2);
  expect_user_error([&] { tokens->read(0, out); }, {"a.mdb", "got 4294967295 as token 1"});
}

TEST_F(LmdbTest, RefusesOtherFiles) {
  expect_refused(write("a.mdb", std::string(10'000, 'x')), {"a.mdb", "expected an LMDB database", "cannot read"});
  expect_refused(folder_ / "missing.mdb", {"missing.mdb", "No such file"});
}

// The root of a copy of the tree is the page that held the first leaf: the library would go round in it for ever.
TEST_F(LmdbTest, RefusesPagesThatAreUsedTwice) {
  std::string path = write_ids(some_ids(20'000), {100}), bytes = read_file(path);
  constexpr size_t kPage = 4096;
  bool changed = false;
  for (size_t page = 2 * kPage; page + kPage <= bytes.size() && !changed; page += kPage) {
    uint16_t flags, first, second;
    std::memcpy(&flags, &bytes[page + 10], 2);
    if (flags != 1) continue;  // no branch
    std::memcpy(&first, &bytes[page + 16], 2);
    std::memcpy(&second, &bytes[page + 18], 2);
    bytes.replace(page + second, 6, bytes.substr(page + first, 6));
    changed = true;
  }
  ASSERT_TRUE(changed);
  expect_refused(write("a.mdb", bytes), {"a.mdb", "cannot read", "is used twice"});
}

TEST_F(LmdbTest, SurvivesMutations) {
  expect_mutations_survived(write_ids(some_ids(20'000), {100, 3000}), 0, 150);
  expect_mutations_survived(write_entries({{"a", "one"}, {"b", std::string(9000, 'x')}}), 0, 150);
}

TEST_F(LmdbTest, RefusesEveryCut) { expect_cuts_refused(write_ids(some_ids(5000), {1000})); }

}  // namespace
}  // namespace tokamak
