// Checkpoints that are copied to a second folder, and back.
#include "checkpoint/archive.h"

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/verify.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tokamak {
namespace {

namespace fs = std::filesystem;

class Archive : public testing::Test {
 protected:
  Archive() {
    store_.fill(1);
    std::ofstream(run_.path() / "metrics.jsonl") << "{}\n";
    std::ofstream(run_.path() / "lock") << "another's";
  }

  fs::path save(int64_t step) {
    return save_checkpoint(run_.path(), {.step = step, .config_json = "{}", .for_others = {{"config.json", "{}\n"}}},
                           store_.store, 10);
  }
  std::vector<std::string> names(const fs::path& run) {
    std::vector<std::string> names;
    for (const fs::path& path : list_checkpoints(checkpoints_folder(run))) names.push_back(path.filename());
    return names;
  }
  static void flip_bit(const fs::path& file) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(500);
    char byte = char(stream.get() ^ 4);
    stream.seekp(500);
    stream.put(byte);
  }

  TemporaryFolder run_, archive_;
  test::HostStore store_;
};

TEST_F(Archive, HasWholeCopies) {
  for (int64_t step : {1, 2, 3}) ArchivedCheckpoint(save(step)).copy_to(archive_.path(), KeepRule(2));
  EXPECT_EQ(names(archive_.path()), (std::vector<std::string>{"step_00000002", "step_00000003"}));
  EXPECT_EQ(fs::read_symlink(archive_ / "checkpoints/latest"), "step_00000003");
  for (const char* name : {"state.json", "model.safetensors", "optimizer.safetensors", "config.json"})
    EXPECT_EQ(read_file(archive_ / "checkpoints/step_00000003" / name),
              read_file(run_ / "checkpoints/step_00000003" / name));
  EXPECT_EQ(read_file(archive_ / "metrics.jsonl"), "{}\n");
  EXPECT_FALSE(fs::exists(archive_ / "lock"));
}

TEST_F(Archive, CopiesWhatTheRunRemovesMeanwhile) {
  ArchivedCheckpoint opened(save(1));
  fs::remove_all(run_ / "checkpoints/step_00000001");
  opened.copy_to(archive_.path(), KeepRule(2));
  verify_checkpoint(archive_ / "checkpoints/step_00000001");
}

TEST_F(Archive, TakesNoDamagedOne) {
  fs::path damaged = save(1);
  flip_bit(damaged / "model.safetensors");
  expect_user_error([&] { ArchivedCheckpoint(damaged).copy_to(archive_.path(), KeepRule(2)); }, {"checksum"});
  EXPECT_TRUE(names(archive_.path()).empty());
  EXPECT_TRUE(list_unfinished(archive_ / "checkpoints").empty());
}

TEST_F(Archive, GivesTheNewestGoodOneBack) {
  for (int64_t step : {1, 2, 3}) ArchivedCheckpoint(save(step)).copy_to(archive_.path(), KeepRule(5));
  flip_bit(archive_ / "checkpoints/step_00000003/model.safetensors");
  std::vector<std::string> warnings;
  EXPECT_EQ(restore_archived(archive_.path(), run_.path(), &warnings), "") << "the run's own are newer";
  fs::remove_all(run_ / "checkpoints");
  fs::remove(run_ / "metrics.jsonl");
  EXPECT_EQ(restore_archived(archive_.path(), run_.path(), &warnings), "step_00000002");
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(names(run_.path()), (std::vector<std::string>{"step_00000002"}));
  EXPECT_EQ(read_file(run_ / "metrics.jsonl"), "{}\n");
  verify_checkpoint(run_ / "checkpoints/step_00000002");
  TemporaryFolder nothing;
  fs::remove_all(run_ / "checkpoints");
  EXPECT_EQ(restore_archived(nothing.path(), run_.path(), &warnings), "");
}

}  // namespace
}  // namespace tokamak
