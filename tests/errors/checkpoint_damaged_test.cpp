// Checkpoints with flipped bits, cut short, or with files missing.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <limits>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_state.h"
#include "checkpoint/checkpoint_tensors.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::HostStore;

const char* const kFiles[] = {"model.safetensors", "optimizer.safetensors", "state.json"};

class DamagedCheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    store_.fill(1);
    for (int64_t step : {1, 2, 3}) paths_.push_back(save(step));
  }

  fs::path save(int64_t step) {
    return save_checkpoint(out_.path(), {.step = step, .config_json = R"({"lr":6e-4})"}, store_.store, 5);
  }

  static void flip(const fs::path& file, size_t bit) {
    std::string content = read_file(file);
    content[bit / 8] = char(content[bit / 8] ^ 1 << bit % 8);
    write_file_quickly(file, content);
  }

  TemporaryFolder out_;
  HostStore store_;
  std::vector<fs::path> paths_;
};

TEST_F(DamagedCheckpoint, AFlippedBitInAnyFileIsFoundAndTheNextOlderTaken) {
  for (const char* name : kFiles) {
    SCOPED_TRACE(name);
    fs::path file = paths_[2] / name;
    std::string good = read_file(file);
    flip(file, 8 * good.size() / 2 + 3);
    expect_user_error([&] { verify_checkpoint(paths_[2]); }, {file.string(), "expected", "got", "use an older one"});
    if (std::string(name) != kOptimizerFile)
      expect_user_error([&] { open_checkpoint(paths_[2], nullptr); }, {file.string()});
    else  // whoever only uses the model does not look at it
      EXPECT_EQ(open_checkpoint(out_.path(), nullptr).path, paths_[2]);
    std::vector<std::string> warnings;
    EXPECT_EQ(find_checkpoint(out_.path(), &warnings)->path, paths_[1]);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find(file.string()), std::string::npos) << warnings[0];
    write_file_quickly(file, good);
  }
  EXPECT_EQ(find_checkpoint(out_.path(), nullptr)->path, paths_[2]);
}

TEST_F(DamagedCheckpoint, EveryByteOfTheStateCounts) {
  fs::path file = paths_[2] / "state.json";
  std::string good = read_file(file);
  for (size_t byte = 0; byte < good.size(); ++byte) {
    flip(file, 8 * byte + 3 * byte % 8);
    expect_user_error([&] { read_state(paths_[2]); }, {file.string()});
    write_file_quickly(file, good);
  }
}

// With the right checksum, as whoever writes such a file can make it.
TEST_F(DamagedCheckpoint, CountsThatNoRunReaches) {
  auto expect_refused = [&](const std::function<void(CheckpointState&)>& change, const std::string& name) {
    CheckpointRecord record = read_record(paths_[2]), good = record;
    change(record.state);
    write_record(paths_[2], record);
    expect_user_error([&] { read_state(paths_[2]); }, {"state.json", name, "the checkpoint is damaged"});
    EXPECT_EQ(find_checkpoint(out_.path(), nullptr)->path, paths_[1]);
    write_record(paths_[2], good);
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  expect_refused([](auto& state) { state.data_position = kMost; }, "data_position from 0");
  expect_refused([](auto& state) { state.data_position = -1; }, "data_position from 0");
  expect_refused([](auto& state) { state.step = kMost; }, "step from 0");
  expect_refused([](auto& state) { state.tokens = kMost; }, "tokens from 0");
  expect_refused([](auto& state) { state.good.step = 4; }, "known to be good from 0 to 3");
  EXPECT_EQ(read_state(paths_[2]).step, 3);
}

TEST_F(DamagedCheckpoint, NothingIsLoadedFromADamagedFile) {
  flip(paths_[2] / "model.safetensors", 8 * (fs::file_size(paths_[2] / "model.safetensors") - 1));
  flip(paths_[2] / "optimizer.safetensors", 8 * (fs::file_size(paths_[2] / "optimizer.safetensors") - 1));
  HostStore other;
  expect_user_error([&] { load_parameters(paths_[2], other.store); }, {"checksum", "model.safetensors"});
  expect_user_error([&] { load_optimizer(paths_[2], other.store); }, {"optimizer.safetensors"});
  for (const std::string& name : other.store.names())
    for (float x : other.read(name)) ASSERT_EQ(x, 0) << name;
}

TEST_F(DamagedCheckpoint, CutShortOrEmpty) {
  for (const char* name : kFiles)
    for (double part : {0.0, 0.5}) {
      SCOPED_TRACE(name);
      fs::path file = paths_[2] / name;
      std::string good = read_file(file);
      write_file_quickly(file, good.substr(0, size_t(part * double(good.size()))));
      expect_user_error([&] { verify_checkpoint(paths_[2]); }, {file.string(), "expected", "got"});
      EXPECT_EQ(find_checkpoint(out_.path(), nullptr)->path, paths_[1]);
      write_file_quickly(file, good);
    }
}

TEST_F(DamagedCheckpoint, FilesMissing) {
  for (const char* name : kFiles) {
    SCOPED_TRACE(name);
    std::string good = read_file(paths_[2] / name);
    fs::remove(paths_[2] / name);
    expect_user_error([&] { verify_checkpoint(paths_[2]); }, {name, "No such file"});
    EXPECT_EQ(find_checkpoint(out_.path(), nullptr)->path, paths_[1]);
    write_file_quickly(paths_[2] / name, good);
  }
}

TEST_F(DamagedCheckpoint, AllOfThem) {
  for (const fs::path& path : paths_) flip(path / "model.safetensors", 1000);
  expect_user_error([&] { find_checkpoint(out_.path(), nullptr); },
                    {"expected a good checkpoint, got 3 damaged", "step_00000003", "another train.out"});
}

TEST_F(DamagedCheckpoint, FilesOfAnotherCheckpoint) {
  store_.fill(2);
  fs::path other = save(4);
  fs::copy(paths_[0] / "model.safetensors", other / "model.safetensors", fs::copy_options::overwrite_existing);
  expect_user_error([&] { verify_checkpoint(other); }, {"model.safetensors", "expected checksum"});
}

TEST_F(DamagedCheckpoint, NoCheckpointAtAll) {
  expect_user_error(
      [&] { open_checkpoint(out_ / "none", nullptr); },
      {"expected a checkpoint's folder, a run folder with checkpoints or a model in Hugging Face's form, got nothing",
       "check the path"});
  fs::create_directory(out_ / "empty");
  expect_user_error([&] { open_checkpoint(out_ / "empty", nullptr); }, {"got none of them"});
}

// With a checksum that is right.
TEST_F(DamagedCheckpoint, AStateThatMakesNoSense) {
  CheckpointRecord good = read_record(paths_[2]), bad = good;
  bad.state.data_position = -1;
  write_record(paths_[2], bad);
  expect_user_error([&] { read_state(paths_[2]); }, {"state.json", "data_position from 0", "got -1"});
  fs::path pipe = out_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  bad = good;
  bad.files[0].name = pipe.string();
  write_record(paths_[2], bad);
  expect_user_error([&] { read_state(paths_[2]); }, {"state.json", "model.safetensors", "pipe"});
  EXPECT_EQ(find_checkpoint(out_.path(), nullptr)->path, paths_[1]);
}

// Taken for no checkpoint, the only one would be begun anew over.
TEST_F(DamagedCheckpoint, WhatCannotBeLookedAtIsNotPassedOver) {
  fs::create_symlink("step_00000009", out_ / "checkpoints/step_00000009");
  std::vector<std::string> warnings;
  EXPECT_EQ(find_checkpoint(out_.path(), &warnings)->path, paths_[2]);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("step_00000009"), std::string::npos) << warnings[0];
  for (const fs::path& path : paths_) fs::remove_all(path);
  expect_user_error([&] { find_checkpoint(out_.path(), nullptr); }, {"expected a good checkpoint, got 1 damaged"});
}

TEST_F(DamagedCheckpoint, APipeIsNotWaitedFor) {
  for (const char* name : kFiles) {
    fs::path file = paths_[2] / name;
    std::string good = read_file(file);
    fs::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    expect_user_error([&] { verify_checkpoint(paths_[2]); }, {file.string(), "it is a pipe"});
    fs::remove(file);
    write_file_quickly(file, good);
  }
}

}  // namespace
}  // namespace tokamak
