// What is written under a name is on the disk by then: this program's fsync takes the place of the C library's.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <vector>

#include "base/file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;

struct Sync {
  fs::path path;  // the file's name at that time
  int64_t bytes;
};

class SyncLog {
 public:
  void add(int fd) {
    struct stat info {};
    ::fstat(fd, &info);
    std::lock_guard lock(mutex_);
    syncs_.push_back({fs::read_symlink("/proc/self/fd/" + std::to_string(fd)), info.st_size});
  }
  /// Of files and folders in there, oldest first.
  std::vector<Sync> of(const fs::path& folder) {
    std::lock_guard lock(mutex_);
    std::vector<Sync> found;
    for (const Sync& sync : syncs_)
      if (sync.path.string().starts_with(folder.string())) found.push_back(sync);
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<Sync> syncs_;
};

SyncLog& sync_log() {
  static SyncLog log;
  return log;
}

}  // namespace
}  // namespace tokamak

extern "C" int fsync(int fd) {
  tokamak::sync_log().add(fd);
  return int(::syscall(SYS_fsync, fd));
}

namespace tokamak {
namespace {

TEST(FileSync, ACommitSyncsTheContentUnderItsOldNameAndThenTheFolder) {
  TemporaryFolder folder;
  AtomicFile file(folder / "a.bin");
  file.write("hello world");
  fs::path temporary = file.temporary_path();
  EXPECT_TRUE(sync_log().of(folder.path()).empty());
  file.commit();
  std::vector<Sync> syncs = sync_log().of(folder.path());
  ASSERT_EQ(syncs.size(), 2u);
  EXPECT_EQ(syncs[0].path, temporary);
  EXPECT_EQ(syncs[0].bytes, 11);
  EXPECT_EQ(syncs[1].path, folder.path());
}

TEST(FileSync, WhatIsAskedForIsSynced) {
  TemporaryFolder folder;
  AtomicFile file(folder / "a.bin");
  file.write("hello");
  file.sync();
  sync_folder(folder.path());
  std::vector<Sync> syncs = sync_log().of(folder.path());
  ASSERT_EQ(syncs.size(), 2u);
  EXPECT_EQ(syncs[0].path, file.temporary_path());
  EXPECT_EQ(syncs[0].bytes, 5);
  EXPECT_EQ(syncs[1].path, folder.path());
}

}  // namespace
}  // namespace tokamak
