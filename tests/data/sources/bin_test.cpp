#include <unistd.h>

#include "tests/data/sources/token_test.h"

namespace tokamak {
namespace {

class BinTest : public TokenTest {
 protected:
  static std::string shard(int32_t magic, int32_t version, int32_t count, const std::string& data) {
    std::vector<int32_t> header(256);
    header[0] = magic;
    header[1] = version;
    header[2] = count;
    return packed(header) + data;
  }
};

TEST_F(BinTest, ReadsTheShardsOfLlmc) {
  Ids ids = some_ids(10'000);
  expect_tokens({write("a.bin", shard(20240520, 1, 10'000, packed_ids<uint16_t>(ids)))}, ids);
  ids = some_ids(5000, 128'256);
  expect_tokens({write("ours.bin", shard(20240520, 2, 5000, packed_ids<uint32_t>(ids)))}, ids);
  expect_tokens({write("llama3.bin", shard(20240801, 7, 5000, packed_ids<uint32_t>(ids)))}, ids);
}

TEST_F(BinTest, SeveralFilesAreOneArray) {
  auto a = write("a.bin", shard(20240520, 1, 3, packed_ids<uint16_t>({1, 2, 3})));
  auto none = write("b.bin", shard(20240520, 1, 0, ""));
  auto c = write("c.bin", shard(20240520, 2, 2, packed_ids<uint32_t>({70'000, 5})));
  expect_tokens({a, none, c}, {1, 2, 3, 70'000, 5});
  auto tokens = open_tokens({a, none, c}, {});
  EXPECT_EQ(tokens->place(4).path, c);
  EXPECT_EQ(tokens->place(4).token, 1);
  auto files = tokens->fingerprints();
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].path, a);
  EXPECT_EQ(files[0].bytes, 1030);
}

TEST_F(BinTest, IsOneDocumentForPrepare) {
  auto path = write("a.bin", shard(20240520, 1, 5, packed_ids<uint16_t>({1, 2, 3, 4, 5})));
  EXPECT_EQ(token_documents(path), std::vector<Ids>({{1, 2, 3, 4, 5}}));
  EXPECT_EQ(token_documents(path, {.part_bytes = 8}), std::vector<Ids>({{1, 2, 3, 4, 5}}));  // in parts of two
  auto none = open_source(write("none.bin", shard(20240520, 1, 0, "")), {});
  Document document;
  EXPECT_FALSE(none->next(document));
}

TEST_F(BinTest, RefusesEveryCut) {
  expect_cuts_refused(write("a.bin", shard(20240520, 1, 3, packed_ids<uint16_t>({1, 2, 3}))));
}

TEST_F(BinTest, RefusesOtherFiles) {
  std::string data = packed_ids<uint16_t>({1, 2, 3});
  expect_refused(write("magic.bin", shard(20240521, 1, 3, data)), {"magic.bin", "20240520", "got 20240521", "raw"});
  expect_refused(write("version.bin", shard(20240520, 4, 3, data)), {"version.bin", "version 1", "got 4"});
  expect_refused(write("llama.bin", shard(20240801, 1, 3, data)), {"llama.bin", "version 7", "got 1"});
  expect_refused(write("long.bin", shard(20240520, 1, 2, data)), {"long.bin", "expected 1028 bytes", "1030"});
  expect_refused(write("negative.bin", shard(20240520, 1, -2, data)), {"negative.bin", "-2 tokens"});
}

TEST_F(BinTest, RefusesIdsThatAreNone) {
  auto path = write("a.bin", shard(20240520, 2, 3, packed<uint32_t>({1, 2, 0x80000000})));
  auto tokens = open_tokens({path}, {});
  Ids two(2), one(1);
  tokens->read(0, two);
  expect_user_error([&] { tokens->read(2, one); }, {"a.bin", "got 2147483648 as token 2", "uint32"});
}

TEST_F(BinTest, RefusesWhatCannotBeRead) {
  expect_refused(folder_ / "none.bin", {"none.bin", "No such file", "check the path"});
  std::filesystem::create_directory(folder_ / "folder.bin");
  expect_refused(folder_ / "folder.bin", {"folder.bin", "a folder"});
  auto path = write("a.bin", shard(20240520, 1, 0, ""));
  std::filesystem::permissions(path, std::filesystem::perms::none);
  const uid_t nobody = 65534;
  bool is_root = ::geteuid() == 0;  // who may read every file
  ASSERT_TRUE(!is_root || ::seteuid(nobody) == 0);
  expect_refused(path, {"a.bin", "Permission denied", "permissions"});
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
}

TEST_F(BinTest, AFileCutShortWhileInUseIsAnError) {
  auto path = write("a.bin", shard(20240520, 1, 3, packed_ids<uint16_t>({1, 2, 3})));
  auto tokens = open_tokens({path}, {});
  std::filesystem::resize_file(path, 1027);
  Ids out(3);
  expect_user_error([&] { tokens->read(0, out); }, {"a.bin", "end of the file", "cut short"});
}

TEST_F(BinTest, RawTokensAreTakenWhereTheyAreNamed) {
  Ids ids = some_ids(6000);
  auto path = write("train.bin", packed_ids<uint16_t>(ids));
  expect_refused(path, {"train.bin", "expected the magic number", "format raw"});
  expect_tokens({path}, ids, {.format = "raw"});
  EXPECT_EQ(token_documents(path, {.format = "raw"}), std::vector<Ids>{ids});
  ids = some_ids(3000, 200'000);
  expect_tokens({write("wide.bin", packed_ids<uint32_t>(ids))}, ids, {.format = "raw", .token_type = "uint32"});
}

TEST_F(BinTest, RefusesRawTokensThatAreNone) {
  SourceOptions raw = {.format = "raw"};
  auto odd = write("odd.bin", "12345");
  expect_refused(odd, {"odd.bin", "multiple of 2 bytes", "got 5 bytes"}, raw);
  raw.token_type = "uint32";
  expect_refused(write("odd32.bin", "123456"), {"multiple of 4 bytes", "uint32", "got 6"}, raw);
  raw.token_type = "float32";
  expect_refused(odd, {"expected uint16 or uint32", "float32"}, raw);
  raw.token_type = "uint16";
  expect_refused(write("shard.bin", shard(20240520, 1, 0, "")), {"shard.bin", "its format is bin"}, raw);
}

}  // namespace
}  // namespace tokamak
