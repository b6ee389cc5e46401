#include "data/prepare_folder.h"

#include <gtest/gtest.h>

#include "data/prepare.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

TEST(PrepareFolder, IsForOneProcessAtATime) {
  TemporaryFolder folder;
  {
    PrepareFolder first(folder.path());
    expect_user_error([&] { PrepareFolder second(folder.path()); },
                      {folder.path().string(), "another `prepare` is working there", "--out"});
  }
  PrepareFolder third(folder.path());
  third.remove();
}

TEST(PrepareFolder, RemovesOnlyWhatItMade) {
  TemporaryFolder folder;
  PrepareFolder made(folder / "new");
  write_file_quickly(made.path() / "plan.json", "x");
  made.remove();
  EXPECT_FALSE(fs::exists(folder / "new"));
  PrepareFolder found(folder.path());
  found.remove();
  EXPECT_TRUE(fs::exists(folder.path()));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(PrepareFolder, ClearsWhatIsInIt) {
  TemporaryFolder folder;
  PrepareFolder work(folder.path());
  make_folder(work.path() / "pipes/1");
  write_file_quickly(work.path() / "pipes/1/c", "x");
  work.clear();
  EXPECT_FALSE(fs::exists(work.path() / "pipes"));
  EXPECT_THROW(PrepareFolder second(folder.path()), UserError);  // the lock is still held
}

TEST(PrepareFolder, IsNoLink) {
  TemporaryFolder folder;
  make_folder(folder / "out");
  make_folder(folder / "target");
  write_file_quickly(folder / "target/plan.json", "mine");
  fs::create_directory_symlink(folder / "target", folder / "out/prepare.unfinished");
  expect_user_error([&] { PrepareFolder work(folder / "out"); }, {"got a link to", "target", "--out"});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "target"), fs::directory_iterator()), 1);
}

TEST(PrepareFolder, RefusesWhatItWouldNotMake) {
  TemporaryFolder folder;
  fs::path work = folder / "prepare.unfinished";
  make_folder(work / "tokenizer");
  write_file_quickly(folder / "mine", "x");
  auto is_refused = [&](const fs::path& name) {
    expect_user_error([&] { PrepareFolder refused(folder.path()); }, {"only what `prepare` makes", name.string()});
    fs::remove_all(work / name);
  };
  for (const char* name : {"thesis.txt", "tokens_x.bin", "tokenizer/mine"}) {
    write_file_quickly(work / name, "mine");
    is_refused(name);
  }
  for (const char* name : {"journal.json", "tokenizer/vocab.bpe", "tokens_000000.bin.0123456789abcdef.tmp"}) {
    fs::create_symlink(folder / "mine", work / name);
    is_refused(name);
  }
  fs::create_directory_symlink(folder.path(), work / "pipes");
  is_refused("pipes");
  for (const char* name : {"tokens_000000.bin", "val_000001.bin.0123456789abcdef.tmp"})
    write_file_quickly(work / name, "ours");
  EXPECT_NO_THROW(PrepareFolder(folder.path()).clear());
  EXPECT_EQ(read_file(folder / "mine"), "x");
}

}  // namespace
}  // namespace tokamak
