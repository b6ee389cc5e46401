#include "base/temporary_file.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/expect_error.h"
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
