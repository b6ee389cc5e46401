// Lines that are edited as they are typed: a terminal of our own, keys as it sends them.
#include "tests/support/run_program.h"
#include "tests/support/tiny_run.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <fcntl.h>

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
  void type(const std::string& keys) { EXPECT_EQ(::write(keys_, keys.data(), keys.size()), ssize_t(keys.size())); }

  /// What the terminal shows more, until it has `text` or a minute is over.
  std::string shown_until(const std::string& text) {
    std::string shown;
    char some[4096];
    for (pollfd ready{keys_, POLLIN, 0}; shown.find(text) == shown.npos && ::poll(&ready, 1, 60'000) > 0;) {
      ssize_t count = ::read(keys_, some, sizeof some);
      if (count <= 0) break;
      shown.append(some, size_t(count));
    }
    return shown;
  }

 private:
  int keys_, held_ = -1;
  std::string name_;
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
  terminal.type(std::string("the kng") + kLeft + kLeft + "i\n");
  terminal.shown_until("> ");
  terminal.type("/new\n");
  terminal.shown_until("> ");
  terminal.type(std::string(kUp) + kUp + " said\n");
  terminal.shown_until("> ");
  terminal.type("/history\n");
  EXPECT_NE(terminal.shown_until("the king said").find("the king said"), std::string::npos);
  terminal.type("\x04");
  ProgramResult result = program.wait();
  EXPECT_EQ(result.status, 0) << result.err;
}

}  // namespace
}  // namespace tokamak
