// `tokamak eval` through the program: every window counts once, and what train prints says how much of it that is.
#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/core.h>

#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

class Eval : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  std::string train(const std::string& batch, const std::string& mask) {
    ProgramResult result = run_program(
        folder_.path(), test::tiny_arguments("train", {"--train.steps=1", "--train.eval_every=1", "--optimizer.lr=0",
                                                       "--train.eval_batches=1", fmt::format("--train.batch={}", batch),
                                                       mask, fmt::format("--train.out=run{}", batch)}));
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }

  /// "... tokens", "loss ... perplexity ...": the initial weights do not depend on the batch.
  std::string loss(const std::string& run, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"eval", run, "--threads=2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramResult result = run_program(folder_.path(), arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out.substr(std::min(result.out.find(", val of "), result.out.size()));
  }

  TemporaryFolder folder_;
};

TEST_F(Eval, DoesNotDependOnTheBatch) {
  for (std::string mask : {"--no-data.mask_documents", "--data.mask_documents"}) {
    std::string printed = train("1", mask);
    EXPECT_NE(printed.find("(the first 1 of "), std::string::npos) << printed;
    train("7", mask);
    EXPECT_EQ(loss("run1"), loss("run7"));
    std::filesystem::remove_all(folder_ / "run1");
    std::filesystem::remove_all(folder_ / "run7");
  }
}

TEST_F(Eval, TellsEntriesApart) {
  train("2", "--no-data.mask_documents");
  std::string printed = loss("run2", {"--data=data,text.txt"});
  EXPECT_NE(printed.find("\n  data: loss "), std::string::npos) << printed;
  EXPECT_NE(printed.find("\n  text.txt: loss "), std::string::npos) << printed;
}

}  // namespace
}  // namespace tokamak
