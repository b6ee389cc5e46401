// Checkpoints onto a disk that is full and into folders that cannot be written.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/mounted_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::HostStore;

fs::path save(const fs::path& out, const HostStore& store, int64_t step) {
  return save_checkpoint(out, {.step = step, .config_json = "{}"}, store.store, 5);
}

std::vector<std::string> entries_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CheckpointDisk, AFullDiskKeepsEarlierCheckpoints) {
  MountedFolder disk("size=80k");  // one checkpoint is 20 KB
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  HostStore store;
  store.fill(1);
  int64_t step = 0;
  std::string message;
  while (message.empty() && step < 10) {
    try {
      save(disk.path(), store, step + 1);
      ++step;
    } catch (const UserError& error) {
      message = error.what();
    }
  }
  EXPECT_GE(step, 1);
  for (const char* piece :
       {"could not be saved", "earlier checkpoints are as they were", "No space left", "free some space"})
    EXPECT_NE(message.find(piece), std::string::npos) << message;
  EXPECT_EQ(find_checkpoint(disk.path(), nullptr)->state.step, step);
  EXPECT_EQ(entries_in(disk.path() / "checkpoints").size(), size_t(step) + 1);  // and `latest`: nothing half-done
}

// Files may not grow beyond 4 KB: the model file fails in the middle, wherever mounting is not allowed too.
TEST(CheckpointDisk, AWriteThatFailsInTheMiddle) {
  TemporaryFolder out;
  HostStore store;
  store.fill(1);
  save(out.path(), store, 1);
  struct rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit low = {4096, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  expect_user_error([&] { save(out.path(), store, 2); }, {"step 2 could not be saved", "File too large"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(entries_in(out / "checkpoints"), (std::vector<std::string>{"latest", "step_00000001"}));
  EXPECT_EQ(find_checkpoint(out.path(), nullptr)->state.step, 1);
}

TEST(CheckpointDisk, AReadOnlyDisk) {
  MountedFolder disk("size=200k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  HostStore store;
  save(disk.path(), store, 1);
  ASSERT_TRUE(disk.make_read_only());
  expect_user_error([&] { save(disk.path(), store, 2); }, {"Read-only file system", "choose another path"});
  EXPECT_EQ(find_checkpoint(disk.path(), nullptr)->state.step, 1);
}

TEST(CheckpointDisk, TheRunFolderIsAFile) {
  TemporaryFolder out;
  write_file_atomic(out / "run", "text");
  HostStore store;
  expect_user_error([&] { save(out / "run", store, 1); }, {"cannot make the folder", "run"});
}

TEST(CheckpointDisk, AFolderWithoutPermission) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  TemporaryFolder out;
  HostStore store;
  save(out.path(), store, 1);
  fs::permissions(out / "checkpoints", fs::perms::owner_read | fs::perms::owner_exec);
  expect_user_error([&] { save(out.path(), store, 2); }, {"Permission denied", "change its permissions"});
  fs::permissions(out / "checkpoints", fs::perms::owner_all);
  EXPECT_EQ(find_checkpoint(out.path(), nullptr)->state.step, 1);
}

}  // namespace
}  // namespace tokamak
