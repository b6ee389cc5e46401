#include "base/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <new>

#include "base/error.h"
#include "tests/support/expect_error.h"

namespace tokamak {
namespace {

std::string act(std::string_view request) {
  if (request == "die") ::raise(SIGKILL);
  if (request == "sleep") ::sleep(600);
  if (request == "refuse") user_error("[file] bad");
  if (request == "fill") throw std::bad_alloc();
  return std::string(request) + "!";
}

TEST(ChildProcess, Answers) {
  ChildProcess child("[file] a", act);
  EXPECT_EQ(child.ask(""), "!");
  std::string large(3 << 20, 'x');
  EXPECT_EQ(child.ask(large), large + "!");
}

TEST(ChildProcess, KeepsWhatItLearned) {
  ChildProcess child("[file] a", [count = 0](std::string_view) mutable { return std::to_string(++count); });
  EXPECT_EQ(child.ask(""), "1");
  EXPECT_EQ(child.ask(""), "2");
}

TEST(ChildProcess, PassesErrorsOn) {
  ChildProcess child("[file] a", act);
  expect_user_error([&] { child.ask("refuse"); }, {"[file] bad"});
  expect_user_error([&] { child.ask("fill"); }, {"[file] a", "fit into memory"});
  EXPECT_EQ(child.ask("again"), "again!");
}

TEST(ChildProcess, ACrashOrAHangIsAUserError) {
  ChildProcess crashing("[file] a", act);
  expect_user_error([&] { crashing.ask("die"); }, {"[file] a", "library crashes", "copy it again"});
  expect_user_error([&] { crashing.ask("x"); }, {"[file] a", "library crashes"});
  ChildProcess hanging("[file] b", act, 1);
  expect_user_error([&] { hanging.ask("sleep"); }, {"[file] b", "hangs (no answer in 1 s)"});
}

TEST(ChildProcess, HoldsNoFileOfItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ChildProcess child("[file] a", act);
  ::close(ends[1]);
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
}

}  // namespace
}  // namespace tokamak
