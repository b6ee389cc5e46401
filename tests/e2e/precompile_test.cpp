// Device code that is compiled before there is a GPU, as for an image of a container.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace tokamak {
namespace {

class Precompile : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TOKAMAK_CACHE", "", 1);
    if (run({}).err.find("built with CUDA") != std::string::npos) GTEST_SKIP() << "built without CUDA";
    ::setenv("TOKAMAK_CACHE", (folder_ / "cache").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("TOKAMAK_CACHE"); }

  ProgramResult run(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"precompile",        "--model.layers=1",        "--model.heads=2",
                                          "--model.width=128", "--model.context=128",     "--model.vocab=512",
                                          "--train.batch=2",   "--compile.precision=bf16"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(folder_.path(), arguments);
  }

  // Of all code in the cache, by name.
  std::vector<std::pair<std::string, std::filesystem::file_time_type>> code() {
    std::vector<std::pair<std::string, std::filesystem::file_time_type>> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "cache"))
      if (entry.is_regular_file() && entry.path().filename() != "probe")
        files.emplace_back(entry.path().filename(), entry.last_write_time());
    std::sort(files.begin(), files.end());
    return files;
  }

  TemporaryFolder folder_;
};

TEST_F(Precompile, KeepsTheCodeOfAStepOnceForEachKindOfGpu) {
  ProgramResult first = run({});
  ASSERT_EQ(first.status, 0) << first.err;
  auto kept = code();
  EXPECT_EQ(
      first.out.substr(0, first.out.find(" (")),
      std::to_string(kept.size()) + " sources of device code for H200 are compiled in " + (folder_ / "cache").string());
  EXPECT_GT(kept.size(), 8U);
  ASSERT_EQ(run({}).status, 0);
  EXPECT_EQ(code(), kept) << "it was there";
  ASSERT_EQ(run({"--gpu=a100-80gb"}).status, 0);
  EXPECT_GT(code().size(), kept.size()) << "machine code of another GPU";
}

TEST_F(Precompile, SaysWhatIsMissing) {
  ProgramResult unknown = run({"--gpu=h20"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("h200"), std::string::npos) << unknown.err;
  ProgramResult unclear = run({"--gpu=b200"});
  EXPECT_EQ(unclear.status, 1);
  EXPECT_NE(unclear.err.find("h100, h200, rtx-4090), got b200"), std::string::npos) << unclear.err;
  ::setenv("TOKAMAK_CACHE", "", 1);
  ProgramResult nowhere = run({});
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_NE(nowhere.err.find("[cache] expected a folder"), std::string::npos) << nowhere.err;
  ::setenv("TOKAMAK_CACHE", "/dev/null", 1);
  ProgramResult refused = run({});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("[cache] expected a folder that keeps code, got /dev/null"), std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace tokamak
