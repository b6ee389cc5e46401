// What is wrong with a checkpoint, told by file and tensor.
#include "checkpoint/verify.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_tensors.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/safetensors.h"
#include "config/config.h"
#include "config/json.h"
#include "tests/support/expect_error.h"
#include "tests/support/host_store.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <limits>

namespace tokamak {
namespace {

namespace fs = std::filesystem;
using test::HostStore;

class Verify : public testing::Test {
 protected:
  void SetUp() override {
    saved_.fill(3);
    RunConfig run;
    run.model = test::small_model();
    CheckpointState state{.step = 3, .config_json = to_json(run), .for_others = hugging_face_files(run.model, nullptr)};
    checkpoint_ = save_checkpoint(folder_.path(), state, saved_.store, 5);
  }

  /// One bit of the tensor's last element.
  void flip(const std::string& file, const std::string& tensor) {
    std::string content = read_file(checkpoint_ / file);
    size_t at = 0;
    {
      SafetensorsReader reader(checkpoint_ / file);
      at = size_t(reader.bytes(tensor).data() - reader.file_bytes().data()) + reader.bytes(tensor).size() - 1;
    }
    content[at] = char(content[at] ^ 1);
    write_file_quickly(checkpoint_ / file, content);
  }

  TemporaryFolder folder_;
  HostStore saved_;
  fs::path checkpoint_;
};

TEST_F(Verify, AGoodOneHasNoProblems) {
  CheckedCheckpoint checked = check_checkpoint(checkpoint_);
  EXPECT_TRUE(checked.problems.empty());
  EXPECT_TRUE(checked.has_checksums);
  EXPECT_EQ(checked.files, 2);
  EXPECT_EQ(checked.tensors, int64_t(3 * saved_.parameters.size() + 1));
  EXPECT_EQ(checked.bytes,
            int64_t(fs::file_size(checkpoint_ / kModelFile) + fs::file_size(checkpoint_ / kOptimizerFile)));
  EXPECT_TRUE(check_checkpoint(folder_ / "checkpoints/latest").problems.empty());
}

TEST_F(Verify, EveryTensorWithAFlippedBitIsNamed) {
  for (const char* file : {kModelFile, kOptimizerFile}) {
    std::string good = read_file(checkpoint_ / file);
    for (const std::string& tensor : SafetensorsReader(checkpoint_ / file).names()) {
      flip(file, tensor);
      CheckedCheckpoint checked = check_checkpoint(checkpoint_);
      ASSERT_EQ(checked.problems.size(), 1u) << tensor;
      EXPECT_EQ(checked.problems[0].file, (checkpoint_ / file).string());
      EXPECT_EQ(checked.problems[0].tensor, tensor);
      expect_user_error(
          [&] { verify_checkpoint(checkpoint_); },
          {"'" + tensor + "' of " + (checkpoint_ / file).string(), "expected checksum xxh64:", "older one"});
      write_file_quickly(checkpoint_ / file, good);
    }
  }
}

TEST_F(Verify, AllThatIsWrongIsTold) {
  flip(kModelFile, "wpe.weight"), flip(kModelFile, "ln_f.bias"), flip(kOptimizerFile, "step");
  CheckedCheckpoint checked = check_checkpoint(checkpoint_);
  ASSERT_EQ(checked.problems.size(), 3u);
  EXPECT_EQ(checked.problems[0].tensor, "ln_f.bias");
  EXPECT_EQ(checked.problems[1].tensor, "wpe.weight");
  EXPECT_EQ(checked.problems[2].tensor, "step");
  expect_user_error([&] { open_checkpoint(checkpoint_, nullptr); }, {"'ln_f.bias'", "(1 more tensors are damaged)"});
}

// Where bytes of the header or the file's length are wrong, no tensor is to blame.
TEST_F(Verify, HeadersLengthsAndStates) {
  std::string good = read_file(checkpoint_ / kModelFile), bad = good;
  for (size_t byte : {size_t(0), size_t(20)}) {
    bad = good;
    bad[byte] = char(bad[byte] ^ 2);
    write_file_quickly(checkpoint_ / kModelFile, bad);
    CheckedCheckpoint checked = check_checkpoint(checkpoint_);
    ASSERT_EQ(checked.problems.size(), 1u) << byte;
    EXPECT_TRUE(checked.problems[0].tensor.empty());
    EXPECT_NE(checked.problems[0].what.find("expected checksum"), std::string::npos) << checked.problems[0].what;
  }
  write_file_quickly(checkpoint_ / kModelFile, good.substr(0, good.size() - 4));
  EXPECT_NE(check_checkpoint(checkpoint_).problems.at(0).what.find("bytes"), std::string::npos);
  fs::remove(checkpoint_ / kModelFile);
  EXPECT_EQ(check_checkpoint(checkpoint_).problems.at(0).file, (checkpoint_ / kModelFile).string());
  fs::remove(checkpoint_ / kStateFile);
  EXPECT_EQ(check_checkpoint(checkpoint_).problems.at(0).file, (checkpoint_ / kStateFile).string());
}

// With checksums that are right.
TEST_F(Verify, TensorsThatAreNotTheConfigurations) {
  CheckpointRecord record = read_record(checkpoint_);
  RunConfig other;
  other.model = test::small_model();
  other.model.context += 1;
  record.state.config_json = to_json(other);
  write_record(checkpoint_, record);
  CheckedCheckpoint checked = check_checkpoint(checkpoint_);
  ASSERT_EQ(checked.problems.size(), 1u);
  EXPECT_NE(checked.problems[0].what.find("expected 'wpe.weight' as f32[7,8], got f32[6,8]"), std::string::npos)
      << checked.problems[0].what;
}

// Of an older version.
TEST_F(Verify, WithoutChecksumsOfTensorsTheFileIsNamed) {
  CheckpointRecord record = read_record(checkpoint_);
  for (FileRecord& file : record.files) file.tensors.clear();
  write_record(checkpoint_, record);
  EXPECT_TRUE(check_checkpoint(checkpoint_).problems.empty());
  flip(kModelFile, "wpe.weight");
  EXPECT_EQ(check_checkpoint(checkpoint_).problems.at(0).tensor, "");
}

TEST_F(Verify, OthersModelsHaveNoChecksums) {
  fs::path model = folder_ / "model";
  fs::create_directory(model);
  for (const char* name : {"config.json", kModelFile}) fs::copy(checkpoint_ / name, model / name);
  CheckedCheckpoint good = check_checkpoint(model);
  EXPECT_TRUE(good.problems.empty());
  EXPECT_FALSE(good.has_checksums);
  checkpoint_ = model;
  std::string content = read_file(model / kModelFile);
  content.replace(content.size() - 4, 4, "\0\0\x80\x7F", 4);  // infinity
  write_file_quickly(model / kModelFile, content);
  CheckedCheckpoint bad = check_checkpoint(model);
  ASSERT_EQ(bad.problems.size(), 1u);
  EXPECT_NE(bad.problems[0].tensor, "");
  EXPECT_NE(bad.problems[0].what.find("finite"), std::string::npos);
  expect_user_error([&] { check_checkpoint(folder_.path()); }, {"expected a checkpoint's folder", "neither"});
  expect_user_error([&] { check_checkpoint(folder_ / "none"); }, {"got nothing", "check the path"});
}

}  // namespace
}  // namespace tokamak
