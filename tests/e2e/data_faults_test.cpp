// Every way in which data can be damaged or change, through the program: no message is missing, nothing half-written
// counts, and what is good afterwards is what an undisturbed program makes.
#include <gtest/gtest.h>

#include <csignal>

#include "data/token_shard_index.h"
#include "tests/data/sources/tar_bytes.h"
#include "tests/e2e/data_faults.h"
#include "tests/support/mounted_folder.h"
#include "tests/support/permissions.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::DataFaults;

constexpr int32_t kTokens = 2000;

/// A shard as llm.c writes it, of tokens that count up to `vocab`.
std::string shard_bytes(int32_t vocab = 300) {
  TemporaryFolder folder;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < kTokens; ++i) ids.push_back(i * 7 % vocab);
  TokenShardWriter writer(folder / "x.bin", kTokens, 2);
  writer.append(ids);
  writer.finish();
  writer.commit();
  return read_file(folder / "x.bin");
}

TEST_F(DataFaults, WrongMagic) {
  test::make_tiny_data(folder_.path());
  std::string bytes = shard_bytes();
  bytes[1] ^= 0x40;
  write("x.bin", bytes);
  expect_unusable("x.bin", {"x.bin", "expected", "magic number", "20240520"});
}

TEST_F(DataFaults, TruncatedShard) {
  test::make_tiny_data(folder_.path());
  write("x.bin", shard_bytes().substr(0, 3000));
  expect_unusable("x.bin", {"x.bin", "expected", "5024 bytes", "got", "3000"});
  write("y.bin", shard_bytes().substr(0, 100));
  expect_unusable("y.bin", {"y.bin", "expected", "got", "100"});
}

TEST_F(DataFaults, FlippedBit) {
  test::make_tiny_data(folder_.path());
  std::string shard = "data/train_000000.bin", bytes = read_file(folder_ / shard);
  bytes[bytes.size() / 2] ^= 1;
  write(shard, bytes);
  ProgramResult inspected = run({"data", "inspect", "data"});
  EXPECT_EQ(inspected.status, 1);
  EXPECT_NE(inspected.out.find("DAMAGED: [shard] " + shard + ": expected the checksum xxh64:"), std::string::npos)
      << inspected.out;
}

TEST_F(DataFaults, TokenBeyondTheVocabulary) {
  test::make_tiny_data(folder_.path());
  write("x.bin", shard_bytes(400));
  expect_refused(train_on("x.bin"), {"x.bin", "token ids below 300", "got 3"});
  expect_refused(run({"prepare", "x.bin", "--vocab=data", "--out=other"}), {"x.bin", "expected", "301", "got"});
  EXPECT_FALSE(fs::exists(folder_ / "other" / kIndexFile));
  // In a prepared folder no good checksum hides it.
  TokenShardIndex index = read_token_shard_index(folder_ / "data");
  index.vocab_size = index.train.shards[0].max_token;
  write_token_shard_index(index, folder_ / "data");
  ProgramResult inspected = run({"data", "inspect", "data"});
  EXPECT_EQ(inspected.status, 1);
  EXPECT_NE(inspected.out.find("expected token ids below"), std::string::npos) << inspected.out;
}

TEST_F(DataFaults, TarCutInTheMiddle) {
  test::make_tiny_data(folder_.path());
  std::string tar = tar_member("a.txt", test::tiny_text(700)) + tar_member("b.txt", test::tiny_text(9000)) + tar_end();
  write("x.tar", tar);
  ProgramResult good = run({"prepare", "x.tar", "--vocab=data", "--out=good"});
  if (good.err.find("built without it") != std::string::npos) GTEST_SKIP() << good.err;
  EXPECT_EQ(good.status, 0) << good.err;
  write("x.tar", tar.substr(0, tar.size() / 2));
  expect_unusable("x.tar", {"x.tar", "expected", "b.txt"});
  write("x.tar", tar);  // whole, but training cannot seek in an archive of text: it says what to do
  expect_refused(train_on("x.tar"), {"x.tar", "tokamak prepare"});
}

TEST_F(DataFaults, NotWhatTheNameSays) {
  test::make_tiny_data(folder_.path());
  for (const char* name : {"x.h5", "x.npy"}) {
    write(name, test::tiny_text(5000));
    if (run({"data", "inspect", name}).out.find("built without it") != std::string::npos) continue;
    expect_unusable(name, {name, "expected", "got"});
  }
}

TEST_F(DataFaults, FilesThatCannotBeRead) {
  test::make_tiny_data(folder_.path());
  fs::create_directory(folder_ / "x.bin");  // a folder where a file should be
  expect_refused(train_on("x.bin"), {"x.bin", "expected"});
  fs::create_symlink("nowhere", folder_ / "y.bin");
  expect_refused(train_on("y.bin"), {"y.bin", "does not exist", "check the path"});
  expect_refused(run({"data", "inspect", "y.bin"}), {"y.bin", "does not exist", "check the path"});
  fs::remove(folder_ / "data" / "train_000000.bin");
  fs::create_directory(folder_ / "data" / "train_000000.bin");
  expect_refused(train(), {"data/train_000000.bin", "Is a directory", "name a file"});
  ProgramResult inspected = run({"data", "inspect", "data"});
  EXPECT_EQ(inspected.status, 1);
  EXPECT_NE(inspected.out.find("Is a directory"), std::string::npos) << inspected.out;
}

TEST_F(DataFaults, FilesThatMayNotBeRead) {
  test::make_tiny_data(folder_.path());
  write("x.bin", shard_bytes());
  write("x.txt", test::tiny_text());
  write("x.txt.gz", "whatever it holds");
  fs::create_directory(folder_ / "closed");
  write("closed/x.bin", shard_bytes());
  for (const char* name : {"x.bin", "x.txt", "x.txt.gz", "closed"}) fs::permissions(folder_ / name, fs::perms::none);
  auto check = [&] {
    expect_unusable("x.bin", {"cannot read x.bin: Permission denied", "change its permissions"});
    expect_unusable("x.txt", {"cannot read x.txt: Permission denied", "change its permissions"}, false);
    expect_unusable("x.txt.gz", {"cannot read x.txt.gz: Permission denied", "change its permissions"}, false);
    expect_refused(train_on("x.txt", {"--data.tokenizer=data", "--model.vocab=0"}),
                   {"cannot read x.txt: Permission denied", "change its permissions"});
    for (const char* path : {"closed/x.bin", "closed/*.bin"}) {
      expect_refused(train_on(path), {"closed/", ".bin: Permission denied", "check the path and its permissions"});
      expect_refused(run({"data", "inspect", path}), {"closed/", ".bin: Permission denied"});
      expect_refused(run({"prepare", path, "--vocab=data", "--out=other"}), {"closed/", ".bin: Permission denied"});
    }
    for (const char* name : {"index.json", "tokenizer.json", "train_000000.bin"}) {
      fs::permissions(folder_ / "data" / name, fs::perms::none);
      expect_refused(train(), {std::string("cannot read data/") + name + ": Permission denied"});
      ProgramResult inspected = run({"data", "inspect", "data"});
      EXPECT_EQ(inspected.status, 1);
      EXPECT_NE((inspected.out + inspected.err).find(std::string("cannot read data/") + name), std::string::npos);
      fs::permissions(folder_ / "data" / name, fs::perms::owner_read);
    }
    EXPECT_EQ(train({"--train.steps=1"}).status, 0);
  };
  bool checked = with_permissions_obeyed(check);
  fs::permissions(folder_ / "closed", fs::perms::owner_all);
  if (!checked) GTEST_SKIP() << "root may not give up reading everything here";
}

TEST_F(DataFaults, DiskFullWhilePreparing) {
  write("text.txt", test::tiny_text(900'000));
  std::vector<std::string> options = {"prepare", "text.txt", "--vocab-size=300", "--shard-tokens=20000", "--threads=2"};
  auto prepare_into = [&](const fs::path& out) {
    std::vector<std::string> arguments = options;
    arguments.push_back("--out=" + out.string());
    return run(arguments);
  };
  ASSERT_EQ(prepare_into(folder_ / "straight").status, 0);
  MountedFolder disk("size=300k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  fs::path out = disk.path() / "data";
  expect_refused(prepare_into(out), {"No space left", "free some space", "run again"});
  EXPECT_FALSE(fs::exists(out / kIndexFile));
  expect_refused(train({"--data.path=" + out.string()}), {out.string(), "interrupted", "same `tokamak prepare`"});
  // More space: the same command goes on, and the result is that of an undisturbed run.
  ASSERT_EQ(::mount("tmpfs", disk.path().c_str(), "tmpfs", MS_REMOUNT, "size=10m"), 0);
  ProgramResult rest = prepare_into(out);
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_NE((rest.out + rest.err).find("going on"), std::string::npos) << rest.out << rest.err;
  for (const auto& entry : fs::directory_iterator(folder_ / "straight"))
    EXPECT_TRUE(read_file(entry.path()) == read_file(out / entry.path().filename())) << entry.path();
  EXPECT_EQ(run({"data", "inspect", out.string()}).status, 0);
}

// What looks at data says so whatever else it lacks for want of it: the vocabulary, the tokenizer.
TEST_F(DataFaults, PreparingInterrupted) {
  test::make_tiny_data(folder_.path());
  fs::create_directories(folder_ / "begun" / kUnfinishedFolder);
  std::initializer_list<std::string> pieces = {"begun: expected data that is finished", "got prepare.unfinished",
                                               "was interrupted", "run the same `tokamak prepare` command again"};
  std::vector<std::vector<std::string>> settings = {
      {"--data.path=begun"},
      {"--data.path=begun", "--model.vocab=301"},
      {"--data.path=begun", "--model.vocab=301", "--train.sample_every=5"},
      {"--data.path=data@1,begun@1"},
      {"--data.path=text.txt", "--data.tokenizer=begun"},
      {"--data.path=data", "--data.val_path=begun"}};
  for (const auto& more : settings) expect_refused(train(more), pieces);
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  for (const char* command : {"inspect", "ledger"}) expect_refused(run({"data", command, "begun"}), pieces);
  expect_refused(run({"prepare", "text.txt", "--vocab=begun", "--out=other"}), pieces);
  // A data set that is being replaced is there until the new one is.
  fs::create_directories(folder_ / "data" / kUnfinishedFolder);
  EXPECT_EQ(run({"data", "inspect", "data"}).status, 0);
}

TEST_F(DataFaults, SourceChangedSinceTheRunBegan) {
  test::make_tiny_data(folder_.path());
  write("x.bin", shard_bytes());
  struct Case {
    const char* path;  // of data.path
    const char* file;
    std::vector<std::string> more;
  };
  std::vector<Case> cases = {{"data", "data/train_000000.bin", {"--train.out=run1"}},
                             {"x.bin", "x.bin", {"--train.out=run2"}},
                             {"text.txt", "text.txt", {"--train.out=run3", "--data.tokenizer=data"}}};
  for (Case& c : cases) {
    SCOPED_TRACE(c.path);
    c.more.insert(c.more.end(), {std::string("--data.path=") + c.path, "--model.vocab=301"});
    auto steps = [&](const char* count) {
      std::vector<std::string> more = c.more;
      more.push_back(std::string("--train.steps=") + count);
      return train(more);
    };
    ASSERT_EQ(steps("5").status, 0);
    std::string good = read_file(folder_ / c.file), bytes = good;
    bytes[bytes.size() / 2] ^= 1;
    write(c.file, bytes);
    expect_refused(steps("10"), {c.file, "has changed since", "restore it", "--train.out"});
    write(c.file, good);
    ProgramResult result = steps("10");
    EXPECT_EQ(result.status, 0) << result.err;
  }
}

}  // namespace
}  // namespace tokamak
