#include "base/memory_sharers.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

std::string place_of(const std::string& boot, const std::string& groups, const std::string& container) {
  TemporaryFolder root;
  make_folder(root / "proc/sys/kernel/random");
  make_folder(root / "proc/self/ns");
  write_file_atomic(root / "proc/sys/kernel/random/boot_id", boot);
  write_file_atomic(root / "proc/self/cgroup", groups);
  std::filesystem::create_symlink(container, root / "proc/self/ns/cgroup");
  return memory_place(root.path());
}

TEST(MemoryPlace, IsOneForAGroupOfASystem) {
  EXPECT_EQ(place_of("1", "0::/job", "cgroup:[1]"), place_of("1", "0::/job", "cgroup:[1]"));
  EXPECT_NE(place_of("1", "0::/job", "cgroup:[1]"), place_of("2", "0::/job", "cgroup:[1]")) << "another machine";
  EXPECT_NE(place_of("1", "0::/job", "cgroup:[1]"), place_of("1", "0::/other", "cgroup:[1]")) << "another group";
  EXPECT_NE(place_of("1", "0::/", "cgroup:[1]"), place_of("1", "0::/", "cgroup:[2]")) << "another container";
}

TEST(MemoryPlace, IsKnownHere) {
  EXPECT_EQ(memory_place(), memory_place());
  EXPECT_GT(memory_place().size(), 2u);
  TemporaryFolder nothing;
  EXPECT_GT(memory_place(nothing.path()).size(), 2u) << "at least the name of the host";
}

}  // namespace
}  // namespace tokamak
