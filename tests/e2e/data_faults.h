// What tests of damaged data share: commands in a folder, and how all of them refuse a file.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "data/token_shard_index.h"
#include "tests/support/expect_refused.h"
#include "tests/support/tiny_run.h"

namespace tokamak::test {

class DataFaults : public testing::Test {
 protected:
  ProgramResult run(const std::vector<std::string>& arguments) { return run_program(folder_.path(), arguments); }
  ProgramResult train(std::vector<std::string> more = {}) { return run(tiny_arguments("train", more)); }
  ProgramResult train_on(const std::string& path, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--data.path=" + path, "--model.vocab=300", "--train.steps=5"});
    return train(more);
  }

  /// A file that no command may take: `inspect` calls it damaged, and training on it and preparing it are refused. Each
  /// says `pieces`. Nothing is left that looks like a result.
  void expect_unusable(const std::string& file, std::initializer_list<std::string> pieces, bool trains = true) {
    SCOPED_TRACE(file);
    expect_refused(run({"prepare", file, "--vocab=data", "--out=other"}), pieces);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "other" / kIndexFile));
    if (trains) expect_refused(train_on(file), pieces);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "run" / "checkpoints"));
    ProgramResult inspected = run({"data", "inspect", file});
    EXPECT_EQ(inspected.status, 1) << inspected.out;
    for (const std::string& piece : pieces)
      EXPECT_NE(inspected.out.find(piece), std::string::npos) << inspected.out << inspected.err << "\nlacks: " << piece;
  }

  void write(const std::string& name, const std::string& bytes) { write_file_quickly(folder_ / name, bytes); }

  TemporaryFolder folder_;
};

}  // namespace tokamak::test
