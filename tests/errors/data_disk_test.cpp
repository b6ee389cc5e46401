// `prepare` onto a disk that is full and into a folder that cannot be written.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/file.h"
#include "data/prepare.h"
#include "tests/support/expect_error.h"
#include "tests/support/expect_refused.h"
#include "tests/support/mounted_folder.h"
#include "tests/support/run_program.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

PrepareOptions options_for(const TemporaryFolder& input, const fs::path& out, size_t bytes) {
  std::string text;
  for (size_t i = 0; text.size() < bytes; ++i) text += char('a' + i * i * i % 23);
  write_file_atomic(input / "text.txt", text);
  return {.inputs = {(input / "text.txt").string()}, .out = out, .vocab_size = 257};
}

TEST(DataErrors, FullDiskKeepsWhatWasThere) {
  MountedFolder disk("size=256k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  TemporaryFolder input;
  TokenShardIndex index = prepare(options_for(input, disk.path() / "data", 10'000));
  // 200 KB of text: too much for the shards. 60 KB: they fit, but not what is cut anew for the two splits.
  for (size_t bytes : {200'000, 60'000}) {
    expect_user_error([&] { prepare(options_for(input, disk.path() / "data", bytes)); },
                      {"cannot write", "No space left", "free some space"});
    TokenStream(disk.path() / "data", read_token_shard_index(disk.path() / "data").train).verify();
    EXPECT_EQ(format_token_shard_index(read_token_shard_index(disk.path() / "data", IndexSources::kRead)),
              format_token_shard_index(index));
    for (const auto& entry : fs::recursive_directory_iterator(disk.path() / "data"))
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

TEST(DataErrors, FullDiskGoesOnWhenThereIsSpace) {
  MountedFolder disk("size=512k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  TemporaryFolder input;
  PrepareOptions options = options_for(input, disk.path() / "data", 60'000);
  options.shard_tokens = 5000;
  write_file_atomic(disk.path() / "filler", std::string(420'000, 'x'));
  expect_user_error([&] { prepare(options); },
                    {"No space left", "The same command goes on from here", "complete shard", kUnfinishedFolder});
  EXPECT_FALSE(fs::exists(disk.path() / "data" / kIndexFile));
  fs::remove(disk.path() / "filler");
  std::string note;
  TokenShardIndex index = prepare(options, {.note = [&](const std::string& text) { note = text; }});
  EXPECT_NE(note.find("going on after"), std::string::npos) << note;
  options.out = input / "straight";
  EXPECT_EQ(format_token_shard_index(prepare(options)), format_token_shard_index(index));
  TokenStream(disk.path() / "data", index.train).verify();
  EXPECT_FALSE(fs::exists(disk.path() / "data" / kUnfinishedFolder));
}

TEST(DataErrors, LimitForTheSizeOfFiles) {
  TemporaryFolder folder;
  options_for(folder, folder / "data", 60'000);
  rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit low = {.rlim_cur = 10'000, .rlim_max = old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  ProgramResult result = run_program(folder.path(), {"prepare", "text.txt", "--vocab-size=257"});
  ::setrlimit(RLIMIT_FSIZE, &old);
  expect_refused(result, {"cannot write", "File too large", "ulimit -f"});
  EXPECT_FALSE(fs::exists(folder / "data" / kIndexFile));
}

TEST(DataErrors, ReadOnlyFolder) {
  MountedFolder disk("size=256k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  ASSERT_TRUE(disk.make_read_only());
  TemporaryFolder input;
  expect_user_error([&] { prepare(options_for(input, disk.path() / "data", 1000)); },
                    {"cannot make the folder", "Read-only file system", "choose another path"});
  expect_user_error([&] { prepare(options_for(input, disk.path(), 1000)); },
                    {"cannot make the folder", kUnfinishedFolder, "read-only"});
}

TEST(DataErrors, OutputIsAFile) {
  TemporaryFolder input;
  expect_user_error([&] { prepare(options_for(input, input / "text.txt", 1000)); },
                    {"cannot make the folder", "text.txt"});
}

}  // namespace
}  // namespace tokamak
