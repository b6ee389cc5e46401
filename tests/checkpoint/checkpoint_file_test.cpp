// Parts of a file of a checkpoint, copied by several threads.
#include "checkpoint/checkpoint_file.h"

#include "base/parallel.h"
#include "tests/support/expect_error.h"
#include "tests/support/quick_file.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tokamak {
namespace {

class CheckpointFileTest : public testing::Test {
 protected:
  void SetUp() override {
    set_num_threads(3);
    content_.resize(size_t(5) << 20 | 77);
    for (size_t i = 0; i < content_.size(); ++i) content_[i] = char(i * 2654435761u >> 13);
    write_file_quickly(path_, content_);
  }
  void TearDown() override { set_num_threads(0); }

  std::string read(const CheckpointFile& file, size_t begin, size_t count) {
    std::string got(count, ' ');
    file.read(file.bytes().subspan(begin, count), std::as_writable_bytes(std::span(got)));
    return got;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "model.safetensors";
  std::string content_;
};

TEST_F(CheckpointFileTest, PartsAreThoseOfTheFile) {
  CheckpointFile file(path_);
  for (auto [begin, count] :
       {std::pair<size_t, size_t>{0, content_.size()}, {13, (size_t(4) << 20) + 5}, {7, 9}, {5, 0}})
    EXPECT_TRUE(read(file, begin, count) == content_.substr(begin, count)) << begin << ", " << count;
}

// What one thread meets is the error of all.
TEST_F(CheckpointFileTest, AFileThatIsCutShortMeanwhileIsAnError) {
  CheckpointFile file(path_);
  std::filesystem::resize_file(path_, content_.size() - 1);
  expect_user_error([&] { read(file, 0, content_.size()); }, {"model.safetensors", "cut short"});
  EXPECT_TRUE(read(file, 0, 1000) == content_.substr(0, 1000));
}

}  // namespace
}  // namespace tokamak
