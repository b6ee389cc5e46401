#include "data/sources/mds_hashes.h"

#include "base/checksum.h"
#include "data/source_notes.h"
#include "tests/data/sources/mds_bytes.h"
#include "tests/data/sources/source_test.h"

namespace tokamak {
namespace {

std::string xxh64_of(const std::string& text) {
  return fmt::format("{:016x}", checksum(std::as_bytes(std::span(text))));
}

class MdsHashesTest : public SourceTest {
 protected:
  static std::string shard() {
    return mds_shard({mds_sample({"one"}), mds_sample({"two"})},
                     R"({"column_encodings": ["str"], "column_names": ["text"], "column_sizes": [null]})");
  }
  void write_index(const std::string& hashes) {
    write("index.json", R"({"shards": [{"format": "mds", "version": 2, "raw_data": {"basename": "a.mds", "bytes": )" +
                            std::to_string(shard().size()) + R"(, "hashes": )" + hashes +
                            R"(}, "zip_data": {"basename": "a.mds.zstd", "bytes": 1, "hashes": {}}}], "version": 2})");
  }
};

TEST_F(MdsHashesTest, AShardHasTheHashOfItsIndex) {
  std::string file = write("a.mds", shard());
  for (const std::string& hashes :
       {R"({"xxh64": ")" + xxh64_of(shard()) + "\"}", std::string("{}"), std::string("[]")}) {
    write_index(hashes);
    EXPECT_EQ(read(file), (Documents{"one", "two"})) << hashes;
  }
}

TEST_F(MdsHashesTest, AChangedShardIsFoundAtItsEnd) {
  write_index(R"({"xxh64": ")" + xxh64_of(shard()) + "\"}");
  std::string changed = shard();
  changed.replace(changed.find("two"), 3, "2wo");
  std::string file = write("a.mds", changed), other = write("b.mds", changed);
  expect_user_error([&] { read(file); }, {"a.mds", "expected the xxh64", "index.json says", "copy or download"});
  EXPECT_EQ(MdsHashes().of(file + ".zstd"), MdsHashes().of(file)) << "hashes are those of what was compressed";
  EXPECT_EQ(read(other), (Documents{"one", "2wo"})) << "the index does not name it";
}

TEST_F(MdsHashesTest, HashesThatAreNotKnownAreTold) {
  std::string file = write("a.mds", shard());
  write_index(R"({"xxh3_128": "00"})");
  SourceOptions options = {.notes = std::make_shared<SourceNotes>()};
  EXPECT_EQ(read(file, options), (Documents{"one", "two"}));
  EXPECT_NE(options.notes->take().at(0).find("index.json: its hashes by xxh3_128 are not checked"), std::string::npos);
}

TEST_F(MdsHashesTest, RefusesHashesOfAnotherForm) {
  std::string file = write("a.mds", shard());
  for (const char* hashes : {"\"sha1\"", R"({"xxh64": 5})", "[1]"}) {
    write_index(hashes);
    expect_user_error([&] { read(file); }, {"index.json", "expected", "got"});
  }
}

}  // namespace
}  // namespace tokamak
