// Lines that are edited as they are typed: a terminal of our own, keys as it sends them.
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <fcntl.h>

#include <utility>

namespace tokamak {
namespace {

class Terminal {
 public:
  Terminal() : keys_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (keys_ < 0 || ::grantpt(keys_) != 0 || ::unlockpt(keys_) != 0) return;
    name_ = ::ptsname(keys_);
    held_ = ::open(name_.c_str(), O_RDWR | O_NOCTTY);  // or what is typed before the program opens it is lost
  }
  Terminal(const Terminal&) = delete;
  ~Terminal() {
    ::close(held_);
    ::close(keys_);
  }

  const std::string& name() const { return name_; }

  /// As soon as a line is being edited, which is a little after its prompt: between two lines the terminal itself would
  /// take Ctrl-D, and nobody see it.
  void type(const std::string& keys) {
    termios mode{};
    for (int waited = 0; ::tcgetattr(held_, &mode) == 0 && (mode.c_lflag & ICANON) && waited < 60'000; ++waited)
      ::usleep(1000);
    EXPECT_EQ(::write(keys_, keys.data(), keys.size()), ssize_t(keys.size()));
  }

  /// What is shown before the next prompt, once `keys` are typed. A line that is drawn once more has its prompt behind
  /// "\r" alone.
  std::string answer_to(const std::string& keys) {
    type(keys);
    return shown_until("\n> ");
  }

  /// What the terminal shows more, through `text`, or until a minute is over.
  std::string shown_until(const std::string& text) {
    size_t at;
    char some[4096];
    for (pollfd ready{keys_, POLLIN, 0}; (at = shown_.find(text)) == shown_.npos && ::poll(&ready, 1, 60'000) > 0;) {
      ssize_t count = ::read(keys_, some, sizeof some);
      if (count <= 0) break;
      shown_.append(some, size_t(count));
    }
    size_t end = at == shown_.npos ? shown_.size() : at + text.size();
    return std::exchange(shown_, shown_.substr(end)).substr(0, end);
  }

 private:
  int keys_, held_ = -1;
  std::string name_, shown_;
};

constexpr const char *kLeft = "\x1b[D", *kUp = "\x1b[A";

TEST(TypedLines, AreEditedAndCalledBack) {
  TemporaryFolder folder;
  test::make_tiny_data(folder.path());
  ASSERT_EQ(run_program(folder.path(), test::tiny_arguments("train", {"--train.steps=1"})).status, 0);
  Terminal terminal;
  if (terminal.name().empty()) GTEST_SKIP() << "there are no terminals here";
  ::setenv("TERM", "xterm", 1);
  RunningProgram program(folder.path(), {"generate", "run", "--interactive", "--tokens=1", "--device=cpu"}, "",
                         {.out = terminal.name(), .in = terminal.name()});
  terminal.shown_until("> ");
  EXPECT_EQ(terminal.answer_to(std::string("the kng") + kLeft + kLeft + "i\n").find("error"), std::string::npos);
  terminal.answer_to("/new\n");
  terminal.answer_to(std::string(kUp) + kUp + " said\n");
  EXPECT_NE(terminal.answer_to("/history\n").find("the king said"), std::string::npos);
  terminal.type("\x04");
  ProgramResult result = program.wait();
  EXPECT_EQ(result.status, 0) << result.err;
}

}  // namespace
}  // namespace tokamak
