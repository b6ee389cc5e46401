#include "tests/data/sources/token_test.h"

namespace tokamak {
namespace {

/// What an .idx holds; the members may be made wrong.
struct Index {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t type = 8;
  std::vector<int32_t> lengths;
  std::vector<int64_t> pointers;
  std::vector<int64_t> documents;

  std::string text() const {
    return magic + packed<uint64_t>({version}) + char(type) + packed<uint64_t>({lengths.size(), documents.size()}) +
           packed(lengths) + packed(pointers) + packed(documents);
  }
};

class MegatronTest : public TokenTest {
 protected:
  /// Three sequences of ten uint16 tokens in all; two documents, one empty one between them.
  static Index good() { return {.lengths = {3, 2, 5}, .pointers = {0, 6, 10}, .documents = {0, 2, 2, 3}}; }

  std::string write_pair(const Index& index, const std::string& data) {
    write("a.idx", index.text());
    return write("a.bin", data);
  }
  std::string write_pair(const Index& index) { return write_pair(index, packed_ids<uint16_t>(ids_)); }

  Ids ids_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
};

TEST_F(MegatronTest, ReadsPairs) {
  std::string path = write_pair(good());
  EXPECT_EQ(format_of(path, {}).name, "megatron");
  expect_tokens({path}, ids_);
  auto files = open_tokens({path}, {})->fingerprints();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, path);
  EXPECT_EQ(files[1].path, (folder_ / "a.idx").string());
}

TEST_F(MegatronTest, KeepsDocuments) {
  EXPECT_EQ(token_documents(write_pair(good())), std::vector<Ids>({{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}}));
  EXPECT_EQ(token_documents(write_pair(good()), {.part_bytes = 4}).size(), 2u);
}

TEST_F(MegatronTest, ReadsAllIntegers) {
  Index index = good();
  index.type = 4;
  index.pointers = {0, 12, 20};
  expect_tokens({write_pair(index, packed_ids<int32_t>(ids_))}, ids_);
  index.type = 5;
  index.pointers = {0, 24, 40};
  expect_tokens({write_pair(index, packed_ids<int64_t>(ids_))}, ids_);
  for (uint8_t type : {1, 2}) {
    index.type = type;
    index.pointers = {0, 3, 5};
    expect_tokens({write_pair(index, packed_ids<uint8_t>(ids_))}, ids_);
  }
  index.type = 3;
  index.pointers = {0, 6, 10};
  expect_tokens({write_pair(index, packed_ids<int16_t>(ids_))}, ids_);
}

TEST_F(MegatronTest, ReadsManySequences) {
  Index index;
  Ids ids = some_ids(300'000);
  for (int64_t i = 0; i < 100'000; ++i) {
    index.lengths.push_back(3);
    index.pointers.push_back(6 * i);
    index.documents.push_back(i);
  }
  index.documents.push_back(100'000);
  std::string path = write_pair(index, packed_ids<uint16_t>(ids));
  expect_tokens({path}, ids);
  auto documents = token_documents(path);
  ASSERT_EQ(documents.size(), 100'000u);
  EXPECT_EQ(documents[70'000], Ids(ids.begin() + 210'000, ids.begin() + 210'003));
}

TEST_F(MegatronTest, RefusesEveryCut) {
  std::string path = write_pair(good()), index = good().text();
  expect_cuts_refused(path);
  for (size_t bytes = 0; bytes < index.size(); ++bytes) {
    write("a.idx", index.substr(0, bytes));
    EXPECT_THROW(open_tokens({path}, {}), UserError) << bytes;
  }
}

TEST_F(MegatronTest, RefusesDamage) {
  auto damaged = [&](auto&& change, std::initializer_list<std::string> pieces) {
    Index index = good();
    change(index);
    expect_refused(write_pair(index), pieces);
  };
  damaged([](Index& x) { x.magic[0] = 'N'; }, {"a.idx", "MMIDIDX"});
  damaged([](Index& x) { x.version = 2; }, {"a.idx", "version 1", "got 2"});
  damaged([](Index& x) { x.type = 7; }, {"a.idx", "type of integers", "got 7"});
  damaged([](Index& x) { x.lengths.push_back(1); }, {"a.idx", "4 sequences", "damaged"});
  damaged([](Index& x) { x.lengths[2] = 6; }, {"a.bin", "expected 22 bytes", "11 tokens of type uint16", "got 20"});
  damaged([](Index& x) { x.lengths[1] = -2; }, {"a.idx", "sequence 1", "got -2"});
  damaged([](Index& x) { x.pointers[1] = 8; }, {"a.idx", "sequence 1 at byte 6", "got 8"});
  damaged([](Index& x) { x.documents = {}; }, {"a.idx", "document mark", "none"});
  damaged([](Index& x) { x.documents[0] = 1; }, {"a.idx", "got 1 as mark 0"});
  damaged([](Index& x) { x.documents[2] = 1; }, {"a.idx", "got 1 as mark 2"});
  damaged([](Index& x) { x.documents[3] = 2; }, {"a.idx", "got 2 as mark 3"});
  damaged([](Index& x) { x.documents[1] = 9; }, {"a.idx", "got 9 as mark 1"});
}

TEST_F(MegatronTest, NeedsBothFiles) {
  std::string path = write_pair(good());
  std::filesystem::remove(folder_ / "a.idx");
  expect_refused(path, {"a.idx", "No such file"}, {.format = "megatron"});
  std::filesystem::remove(path);
  write("a.idx", good().text());
  expect_refused(folder_ / "a.idx", {"a.bin", "No such file"}, {.format = "megatron"});
}

}  // namespace
}  // namespace tokamak
