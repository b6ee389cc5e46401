// Standard output and standard error that cannot be written: training goes on, and what is lost is not hidden. And
// what is written to those that are no terminal.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
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

/// The terminal's side of a pseudo-terminal, and what was written to it.
class Terminal {
 public:
  Terminal() : fd_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (::grantpt(fd_) != 0 || ::unlockpt(fd_) != 0) throw std::runtime_error("no pseudo-terminal");
    user_ = ::open(::ptsname(fd_), O_RDWR | O_NOCTTY);  // as long as it is open, reading waits and does not fail
    reader_ = std::thread([this] {
      char bytes[4096];
      for (ssize_t count; (count = ::read(fd_, bytes, sizeof bytes)) > 0;) text_.append(bytes, size_t(count));
    });
  }
  ~Terminal() { close(); }

  std::filesystem::path path() const { return ::ptsname(fd_); }
  /// All of it, when the program has ended.
  std::string text() {
    close();
    return text_;
  }

 private:
  void close() {
    if (reader_.joinable()) ::close(user_), reader_.join(), ::close(fd_);
  }

  int fd_, user_ = -1;
  std::string text_;
  std::thread reader_;
};

// `train` draws a bar on standard output, `prepare` a line on standard error.
TEST_F(StreamsTest, OnlyTerminalsThatCanMoveTheirCursorGetEscapeCodes) {
  std::vector<std::string> train = tiny_arguments("train", {"--train.resume=false"});
  const std::vector<std::string> prepare = {"prepare", "text.txt", "--out=again", "--vocab-size=301"};
  for (const char* kind : {"xterm", "dumb", ""}) {
    ::setenv("TERM", kind, 1);
    Terminal out, err;
    EXPECT_EQ(run(train, {.out = out.path(), .err = {}}).status, 0);
    EXPECT_EQ(run(prepare, {.out = {}, .err = err.path()}).status, 0);
    bool moves = std::string(kind) == "xterm";
    std::string bar = out.text(), line = err.text();
    EXPECT_EQ(bar.find("\x1b[") != bar.npos, moves) << kind << bar;
    EXPECT_EQ(bar.find("[==") != bar.npos, moves) << kind << bar;
    EXPECT_EQ(line.find("\x1b[") != line.npos, moves) << kind << line;
    EXPECT_NE(bar.find("step  20/20"), bar.npos) << kind << bar;
  }
  ::setenv("TERM", "xterm", 1);
  for (const ProgramResult& piped : {run(train), run(prepare)}) {
    EXPECT_EQ(piped.status, 0) << piped.err;
    EXPECT_EQ((piped.out + piped.err).find_first_of("\x1b\r"), std::string::npos) << piped.out << piped.err;
  }
}

// Neither the names of a data set nor what a model learned to write: here the folder's name clears a screen, and the
// text is all in red. What goes into a file or a pipe is the text as it is.
TEST_F(StreamsTest, NamesAndTextsCannotSteerATerminal) {
  const std::string data =
                        "\x1b"
                        "c",
                    red = "\x1b[31mred\x1b[0m ";
  std::string text;
  for (int i = 0; i < 1000; ++i) text += red;
  write_file_quickly(folder_ / "red.txt", text);
  std::vector<std::string> train =
      tiny_arguments("train", {"--data.path=" + data, "--optimizer.lr=0.01", "--train.steps=60", "--train.batch=8",
                               "--train.sample_every=60", "--train.sample_tokens=20"});
  for (const std::vector<std::string>& command : {std::vector<std::string>{"prepare", "red.txt", "--out=" + data},
                                                  {"data", "inspect", data},
                                                  train,
                                                  {"eval", "run"},
                                                  {"data", "ledger", "run"},
                                                  {"data", "ledger", "run", "--step=1"}}) {
    ProgramResult result = run(command);
    EXPECT_EQ(result.status, 0) << command[0] << result.err;
    EXPECT_EQ((result.out + result.err).find('\x1b'), std::string::npos) << command[0] << result.out << result.err;
  }
  Terminal terminal;
  EXPECT_EQ(run({"generate", "run", "--tokens=20", "--prompt=" + red}, {.out = terminal.path(), .err = {}}).status, 0);
  std::string shown = terminal.text();
  EXPECT_EQ(shown.find('\x1b'), std::string::npos) << shown;
  EXPECT_NE(shown.find("\\x1b[31mred"), std::string::npos) << shown;
  EXPECT_NE(run({"generate", "run", "--tokens=20", "--prompt=" + red}).out.find(red), std::string::npos);
}

// To a file a step's line has everything; all others fit a terminal.
TEST_F(StreamsTest, LinesOfTrainingHaveEverythingInAFileAndElseFitATerminal) {
  ProgramResult result = run(tiny_arguments("train", {"--train.eval_every=10", "--train.eval_batches=2"}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("validation loss"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("(of the first 4 of "), std::string::npos) << result.out;
  std::istringstream lines(result.out);
  int steps = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("step ")) {
      EXPECT_LE(line.size(), 80u) << line;
      continue;
    }
    ++steps;
    for (const char* part : {" | loss ", " | norm ", " | lr ", " tok/s", " MFU", " | ETA "})
      EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
  }
  EXPECT_EQ(steps, 20);
}

TEST_F(StreamsTest, LinesOfTrainingFitATerminal) {
  ::setenv("TERM", "xterm", 1);
  Terminal terminal;
  EXPECT_EQ(run(tiny_arguments("train", {"--train.eval_every=10"}), {.out = terminal.path(), .err = {}}).status, 0);
  std::istringstream lines(std::regex_replace(terminal.text(), std::regex("\r|\x1b\\[[0-9;?]*[A-Za-z]"), "\n"));
  int steps = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    bool has_norm = line.starts_with("step ") && line.find(" | norm ") != std::string::npos;
    steps += has_norm;
  }
  EXPECT_EQ(steps, 20);
}

// As in `tokamak train | head`: the reader leaves after its first bytes.
TEST_F(StreamsTest, AReaderThatLeavesEndsNoTraining) {
  std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // else the program reads itself
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
