// Standard output and standard error that cannot be written: training goes on, and what is lost is not hidden.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

using test::tiny_arguments;

const char* const kFull = "/dev/full";

class StreamsTest : public testing::Test {
 protected:
  void SetUp() override { test::make_tiny_data(folder_.path()); }

  ProgramResult run(const std::vector<std::string>& arguments, const ProgramStreams& streams = {}) {
    return run_program(folder_.path(), arguments, "", streams);
  }
  bool saved(const std::string& run, int64_t step) const {
    return std::filesystem::exists(folder_ / run / "checkpoints" / fmt::format("step_{:08}", step));
  }

  TemporaryFolder folder_;
};

TEST_F(StreamsTest, OutputThatIsLostIsAnError) {
  ProgramResult trained = run(tiny_arguments("train"), {.out = kFull, .err = {}});
  EXPECT_EQ(trained.status, 1);
  EXPECT_NE(trained.err.find("[output] expected to write all of standard output"), std::string::npos) << trained.err;
  EXPECT_TRUE(saved("run", 20));
  for (const std::vector<std::string>& command : {std::vector<std::string>{"eval", "run"},
                                                  {"generate", "run", "--tokens=3"},
                                                  {"data", "ledger", "run"},
                                                  {"--version"},
                                                  {"train", "--help"}}) {
    ProgramResult result = run(command, {.out = kFull, .err = {}});
    EXPECT_EQ(result.status, 1) << command[0] << result.err;
    EXPECT_NE(result.err.find("standard output"), std::string::npos) << command[0] << result.err;
  }
}

TEST_F(StreamsTest, ErrorsThatCannotBeToldAreErrorsStill) {
  EXPECT_EQ(run({"trian"}, {.out = {}, .err = kFull}).status, 1);
  EXPECT_EQ(run({}, {.out = {}, .err = kFull}).status, 1);
  EXPECT_EQ(run(tiny_arguments("train"), {.out = kFull, .err = kFull}).status, 1);
  EXPECT_EQ(run({"prepare", "text.txt", "--out=again"}, {.out = {}, .err = kFull}).status, 0);
}

// As in `tokamak train | head`: the reader leaves after its first bytes.
TEST_F(StreamsTest, AReaderThatLeavesEndsNoTraining) {
  std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  RunningProgram program(folder_.path(), tiny_arguments("train", {"--train.steps=300"}), "", {.out = pipe, .err = {}});
  char byte = 0;
  while (::read(reader, &byte, 1) != 1) ::usleep(1000);
  ::close(reader);
  ProgramResult result = program.wait();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(saved("run", 300));
}

}  // namespace
}  // namespace tokamak
