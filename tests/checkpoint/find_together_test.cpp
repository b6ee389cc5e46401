// The checkpoint that ranks go on from: what each of them compares, and what they know of each other's.
#include "checkpoint/find_together.h"

#include "backend/ranks/inprocess.h"
#include "base/error.h"
#include "checkpoint/checkpoint_listing.h"
#include "checkpoint/verify.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <set>

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::HostStore;

void flip_bit(const fs::path& file, int64_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(at);
  char byte = char(stream.get() ^ 4);
  stream.seekp(at);
  stream.put(byte);
}

class FindTogether : public testing::Test {
 protected:
  FindTogether() {
    store_.fill(1);
    for (int64_t step : {1, 2})
      newest_ = save_checkpoint(out_.path(), {.step = step, .config_json = "{}"}, store_.store, 5);
  }

  // What all of `count` ranks find, by name, and the warnings of any.
  std::string find(int count, std::vector<std::string>* warnings = nullptr) {
    std::mutex mutex;
    std::set<std::string> found;
    run_ranks(count, [&](Communicator& world) {
      MeshRanks ranks(Mesh{{{"data", count}}}, world);
      std::vector<std::string> told;
      std::optional<FoundCheckpoint> mine = find_together(out_.path(), &told, &ranks);
      std::lock_guard lock(mutex);
      found.insert(mine ? mine->path.filename().string() : "none");
      if (warnings) *warnings = told;
    });
    EXPECT_EQ(found.size(), 1u) << "ranks go on from different ones";
    return *found.begin();
  }

  TemporaryFolder out_;
  HostStore store_;
  fs::path newest_;
};

TEST_F(FindTogether, AllFindTheNewest) {
  for (int ranks : {2, 3, 7}) EXPECT_EQ(find(ranks), "step_00000002");
}

// Wherever the damage is, some rank looks there, and all skip the checkpoint.
TEST_F(FindTogether, WhatOneRankFindsDamagedAllSkip) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    auto size = int64_t(fs::file_size(newest_ / name));
    for (int64_t at = 0; at < size; at += at < 64 ? 7 : size / 11) {
      flip_bit(newest_ / name, at);
      std::vector<std::string> warnings;
      EXPECT_EQ(find(3, &warnings), "step_00000001") << name << " byte " << at;
      ASSERT_EQ(warnings.size(), 1u);
      EXPECT_NE(warnings[0].find(name), std::string::npos) << warnings[0];
      flip_bit(newest_ / name, at);
    }
  }
  EXPECT_EQ(find(3), "step_00000002");
}

TEST_F(FindTogether, ADamagedStateIsSkipped) {
  flip_bit(newest_ / "state.json", 20);
  EXPECT_EQ(find(2), "step_00000001");
}

TEST_F(FindTogether, OlderRecordsAreComparedAsAWhole) {
  CheckpointRecord record = read_record(newest_);
  for (FileRecord& file : record.files) file.header.clear();
  write_record(newest_, record);
  EXPECT_EQ(find(3), "step_00000002");
  flip_bit(newest_ / "model.safetensors", int64_t(fs::file_size(newest_ / "model.safetensors")) - 5);
  EXPECT_EQ(find(3), "step_00000001");
}

TEST_F(FindTogether, AllDamagedIsAnErrorOfAllRanks) {
  for (const char* name : {"step_00000001", "step_00000002"}) fs::remove(out_ / "checkpoints" / name / "state.json");
  expect_user_error([&] { find(2); }, {"expected a good checkpoint, got 2 damaged"});
  fs::remove_all(out_ / "checkpoints");
  EXPECT_EQ(find(2), "none");
}

// No byte of a file is left to nobody, and the work is divided.
TEST_F(FindTogether, SharesOfTheWorkAreTheWholeFile) {
  CheckpointRecord record = read_record(newest_);
  auto file = std::make_shared<const CheckpointFile>(newest_ / record.files[1].name);
  for (auto& [name, checksum] : record.files[1].tensors) {
    std::string kept = std::exchange(checksum, "xxh64:0");
    int told = 0;
    for (int64_t index = 0; index < 4; ++index) try {
        verify_file(file, record.files[1], {index, 4});
      } catch (const UserError&) {
        ++told;
      }
    EXPECT_EQ(told, 1) << name;
    checksum = kept;
  }
}

}  // namespace
}  // namespace tokamak
