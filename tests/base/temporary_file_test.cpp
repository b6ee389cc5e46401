#include "base/temporary_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFile, NobodyForeseesItsName) {
  TemporaryFolder folder;
  std::set<fs::path> names;
  for (int i = 0; i < 100; ++i) {
    fs::path path = make_temporary(folder / "a.b").path;
    EXPECT_EQ(path.parent_path(), folder.path());
    EXPECT_EQ(without_temporary_ending(path.filename().string()), "a.b");
    names.insert(path);
  }
  EXPECT_EQ(names.size(), 100u);
}

// Names are random, so that only this shows what happens when somebody was there first.
TEST(TemporaryFile, OpensNothingThatIsThereAlready) {
  TemporaryFolder folder;
  EXPECT_TRUE(create_exclusively(AT_FDCWD, folder / "new", 0666).is_open());
  write_file_quickly(folder / "file", "content");
  fs::create_symlink(folder / "nowhere", folder / "dangling");
  fs::create_symlink(folder / "file", folder / "link");
  for (const char* name : {"new", "file", "link", "dangling"}) {
    FileDescriptor fd = create_exclusively(AT_FDCWD, folder / name, 0666);
    EXPECT_FALSE(fd.is_open()) << name;
    EXPECT_EQ(errno, EEXIST) << name;
  }
  EXPECT_EQ(read_file(folder / "file"), "content");
  EXPECT_FALSE(fs::exists(folder / "nowhere"));
}

TEST(TemporaryFile, TellsItsEnding) {
  EXPECT_EQ(without_temporary_ending("a.0123456789abcdef.tmp"), "a");
  for (const char* name : {"a", "a.tmp", ".0123456789abcdef.tmp", "a.0123456789abcdeg.tmp", "a_0123456789abcdef.tmp"})
    EXPECT_EQ(without_temporary_ending(name), name);
}

TEST(TemporaryFile, OnlyTheDeadAreRemoved) {
  TemporaryFolder folder;
  TemporaryFile living = make_temporary(folder / "a");
  TemporaryFile other = make_temporary(folder / "b");
  fs::path dead = make_temporary(folder / "a").path, link = folder / "a.0123456789abcdef.tmp";
  fs::create_symlink(dead, link);
  other.fd = FileDescriptor();
  remove_dead_temporaries(folder / "a");
  EXPECT_TRUE(fs::exists(living.path));
  EXPECT_TRUE(fs::exists(other.path));
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST(TemporaryFile, NamesTheFileThatItIsFor) {
  TemporaryFolder folder;
  expect_user_error([&] { make_temporary(folder / "no/such/file"); }, {"cannot write", "no/such/file:"});
}

}  // namespace
}  // namespace tokamak
