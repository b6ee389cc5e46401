#include "base/control_group.h"

#include <gtest/gtest.h>

#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

class ControlGroup : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    write_file_quickly(root_ / path, text);
  }
  GroupLimits limits() const { return read_group_limits(root_.path()); }

  TemporaryFolder root_;
};

TEST_F(ControlGroup, NoneOrNoLimit) {
  EXPECT_FALSE(limits().memory_left || limits().cpus);
  write("proc/self/cgroup", "0::/a\n");
  write("sys/fs/cgroup/a/memory.max", "max\n");
  write("sys/fs/cgroup/a/memory.current", "5\n");
  write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_FALSE(limits().memory_left || limits().cpus);
  write("proc/self/cgroup", "3:memory:/\n2:cpu,cpuacct:/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(limits().memory_left || limits().cpus);
}

TEST_F(ControlGroup, Version2TakesTheTightestOfAllAround) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/memory.max", "1000\n");
  write("sys/fs/cgroup/outer/memory.current", "700\n");
  write("sys/fs/cgroup/outer/memory.stat", "anon 300\nfile 400\ninactive_file 250\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "900\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "100\n");
  write("sys/fs/cgroup/outer/inner/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/outer/cpu.max", "400000 100000\n");
  EXPECT_EQ(limits().memory_left, 550);
  EXPECT_EQ(limits().cpus, 1.5);
}

// A container sees its own group as the root, while its path is the one outside.
TEST_F(ControlGroup, Version1InAContainer) {
  write("proc/self/cgroup", "9:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "700\n");
  write("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limits().memory_left, 400);
  EXPECT_EQ(limits().cpus, 0.5);
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
  EXPECT_EQ(limits().memory_left, 0);
}

}  // namespace
}  // namespace tokamak
