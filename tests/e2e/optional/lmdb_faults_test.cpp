// LMDB databases of the wrong shape, through the program.
#include "tests/data/sources/optional/lmdb_writer.h"
#include "tests/e2e/data_faults.h"

namespace tokamak {
namespace {

class LmdbFaults : public test::DataFaults {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  void write_database(const LmdbEntries& entries, const char* database = nullptr, unsigned flags = 0) {
    write_lmdb((folder_ / "a.mdb").string(), entries, database, flags);
  }
};

TEST_F(LmdbFaults, ValuesOfOddLength) {
  write_database({{"1", std::string("\1\0\2\0", 4)}, {"2", std::string("\1\0\2", 3)}});
  std::initializer_list<std::string> pieces = {"a.mdb", "values of uint16 tokens", "a multiple of 2 bytes",
                                               "got 3 bytes under the key 2"};
  expect_refused(train_on("a.mdb"), pieces);
  expect_refused(run({"prepare", "a.mdb", "--format=lmdb-tokens", "--vocab=data", "--out=other"}), pieces);
  ProgramResult inspected = run({"data", "inspect", "a.mdb", "--format=lmdb-tokens"});
  EXPECT_EQ(inspected.status, 1);
  EXPECT_NE(inspected.out.find("got 3 bytes under the key 2"), std::string::npos) << inspected.out;
}

TEST_F(LmdbFaults, NeitherTextNorTokens) {
  write_database({{"1", "plain text"}, {"2", std::string("\1\0\2", 3)}});
  expect_unusable("a.mdb", {"a.mdb key 2", "expected text or a JSON object", "zero bytes", "lmdb-tokens"}, false);
  expect_refused(train_on("a.mdb"), {"a.mdb", "a multiple of 2 bytes", "under the key 2"});
}

TEST_F(LmdbFaults, TextIsForPrepareOnly) {
  for (const char* text : {"of odd length", "of even length, so that it might be taken for tokens"}) {
    write_database({{"1", text}});
    expect_refused(train_on("a.mdb"), {"a.mdb", "expected values of uint16 tokens", "key 1", "tokamak prepare"});
    EXPECT_NE(run({"data", "inspect", "a.mdb"}).out.find(std::string("begins \"") + text), std::string::npos);
  }
  EXPECT_EQ(run({"prepare", "a.mdb", "--vocab=data", "--out=other"}).status, 0);
}

TEST_F(LmdbFaults, ObjectsWithoutTheField) {
  write_database({{"1", R"({"text": "one"})"}, {"2", R"({"body": "two"})"}});
  expect_unusable("a.mdb", {"a.mdb key 2", "expected", "text", "--field"}, false);
}

TEST_F(LmdbFaults, SeveralValuesForAKey) {
  write_database({{"a", "12"}, {"a", "13"}}, nullptr, MDB_DUPSORT);
  expect_unusable("a.mdb", {"a.mdb", "expected one value for each key", "got", "MDB_DUPSORT", "copy"});
}

TEST_F(LmdbFaults, NamedDatabases) {
  write_database({{"a", "12"}}, "train");
  expect_unusable("a.mdb", {"a.mdb", "expected values in the main database", "train", "copy one into a file"});
}

}  // namespace
}  // namespace tokamak
