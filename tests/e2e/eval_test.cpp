// `tokamak eval` through the program: every window counts once, and what train prints says how much of it that is.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <filesystem>

#include "base/file.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

namespace tokamak {
namespace {

/// Words of all sorts of letters.
std::string letters(size_t bytes) {
  std::string text;
  for (uint64_t i = 0; text.size() < bytes; ++i) text += "etaoinshrdlu   "[philox4x32(1, i)[0] % 15];
  return text;
}

/// Sees the files of a folder being opened.
class OpenWatch {
 public:
  explicit OpenWatch(const std::filesystem::path& folder) : events_(::inotify_init1(IN_CLOEXEC)) {
    ::inotify_add_watch(events_.get(), folder.c_str(), IN_OPEN);
  }
  /// The next time that a file of this name is opened; false when a minute has passed.
  bool wait(const std::string& name) {
    for (pollfd poll = {events_.get(), POLLIN, 0};;) {
      while (!names_.empty()) {
        std::string opened = names_.front();
        names_.pop_front();
        if (opened == name) return true;
      }
      alignas(inotify_event) char buffer[4096];
      if (::poll(&poll, 1, 60'000) != 1) return false;
      ssize_t size = ::read(events_.get(), buffer, sizeof buffer);
      for (ssize_t at = 0; at < size;) {
        auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        names_.emplace_back(event->len > 0 ? event->name : "");
        at += ssize_t(sizeof(inotify_event) + event->len);
      }
    }
  }

 private:
  FileDescriptor events_;
  std::deque<std::string> names_;
};

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
    EXPECT_NE(printed.find("(of the first 1 of "), std::string::npos) << printed;
    train("7", mask);
    EXPECT_EQ(loss("run1"), loss("run7"));
    std::filesystem::remove_all(folder_ / "run1");
    std::filesystem::remove_all(folder_ / "run7");
  }
}

// 0.001 apart at most, where bf16 has 8 bits.
TEST_F(Eval, TakesAnotherPrecisionThanTheRuns) {
  train("2", "--no-data.mask_documents");
  auto loss_in = [&](const std::string& precision) { return loss("run2", {"--compile.precision=" + precision}); };
  EXPECT_EQ(loss_in("run"), loss("run2"));
  std::string low = loss_in("bf16"), high = loss_in("fp32");
  EXPECT_NE(low, high);
  auto number = [](const std::string& printed) { return std::stod(printed.substr(printed.find("loss ") + 5)); };
  EXPECT_NEAR(number(low), number(high), 1e-3) << low << high;
}

TEST_F(Eval, TellsEntriesApart) {
  train("2", "--no-data.mask_documents");
  std::string printed = loss("run2", {"--data=data,text.txt"});
  EXPECT_NE(printed.find("\n  data: loss "), std::string::npos) << printed;
  EXPECT_NE(printed.find("\n  text.txt: loss "), std::string::npos) << printed;
}

// The new one comes while the old tokenizer, which has just been opened, is read: of so many tokens that there is time.
TEST_F(Eval, TakesItsDataFromOneDataSet) {
  write_file_quickly(folder_ / "letters.txt", letters(100'000));
  const std::vector<std::string> prepare = {"prepare", "letters.txt", "--out=data", "--vocab-size=4000"};
  ASSERT_EQ(run_program(folder_.path(), prepare).status, 0);
  train("2", "--no-data.mask_documents");
  std::string of_the_old = loss("run2");
  OpenWatch watch(folder_ / "data");
  RunningProgram eval(folder_.path(), {"eval", "run2", "--threads=2"});
  ASSERT_TRUE(watch.wait("vocab.bpe")) << "the last of which the checksum is compared";
  ASSERT_TRUE(watch.wait("tokenizer.json"));
  eval.send(SIGSTOP);
  test::make_tiny_data(folder_.path());
  eval.send(SIGCONT);
  ProgramResult result = eval.wait();
  if (result.status == 0)  // stopped too late: it had opened the old one
    EXPECT_NE(result.out.find(of_the_old), std::string::npos) << result.out;
  else
    EXPECT_NE(result.err.find("got another one in"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace tokamak
