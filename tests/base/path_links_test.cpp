#include "base/path_links.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

TEST(FollowLinks, EndsWhereTheyLead) {
  TemporaryFolder folder;
  fs::create_directory(folder / "below");
  fs::create_symlink("below/middle", folder / "first");  // relative to the folder that it is in
  fs::create_symlink(folder / "absent", folder / "below/middle");
  EXPECT_EQ(follow_links(folder / "first").path, folder / "absent");
  EXPECT_EQ(follow_links(folder / "absent").path, folder / "absent");
  EXPECT_FALSE(follow_links(folder / "first").descriptor);
}

TEST(FollowLinks, KnowsNamesOfOpenFiles) {
  TemporaryFolder folder;
  fs::create_symlink("/dev/fd/7", folder / "mine");
  EXPECT_EQ(follow_links("/dev/fd/63").descriptor, 63);
  EXPECT_EQ(follow_links("/proc/self/fd/1").descriptor, 1);
  EXPECT_EQ(follow_links(folder / "mine").descriptor, 7);
  EXPECT_FALSE(follow_links(folder / "7").descriptor);
  EXPECT_FALSE(follow_links("/dev/fd/x").descriptor);
}

TEST(IsNamed, AlsoWhatLeadsNowhere) {
  TemporaryFolder folder;
  fs::create_symlink("absent", folder / "nowhere");
  fs::create_symlink("itself", folder / "itself");
  for (const char* name : {"nowhere", "itself", "."}) EXPECT_TRUE(is_named(folder / name)) << name;
  for (const char* name : {"absent", "absent/below", "itself/below"}) EXPECT_FALSE(is_named(folder / name)) << name;
}

TEST(FollowLinks, EndsInACircle) {
  TemporaryFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  EXPECT_FALSE(follow_links(folder / "a").descriptor);
}

}  // namespace
}  // namespace tokamak
