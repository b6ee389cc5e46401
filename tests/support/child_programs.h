// The processes below a program that a test has started.
#pragma once

#include <gtest/gtest.h>

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/socket.h"

namespace tokamak::test {

/// A process that has ended may wait for its parent to notice.
inline bool lives(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  size_t state = text.rfind(") ");
  return state != text.npos && text[state + 2] != 'Z' && text[state + 2] != 'X';
}

inline bool within(double seconds, const std::function<bool()>& holds) {
  for (Deadline deadline = deadline_in(seconds); !holds(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (milliseconds_left(deadline) == 0) return false;
  return true;
}

inline std::vector<pid_t> children_of(const std::string& process) {
  std::vector<pid_t> children;
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + process + "/task", gone)) {
    std::ifstream file(thread.path() / "children");
    children.insert(children.end(), std::istream_iterator<pid_t>(file), {});
  }
  return children;
}

/// Of a program that this test has started, as soon as there are so many.
inline std::vector<pid_t> ranks_below(size_t number) {
  std::vector<pid_t> ranks;
  EXPECT_TRUE(within(20, [&] {
    std::vector<pid_t> programs = children_of("self");
    if (programs.size() == 1) ranks = children_of(std::to_string(programs[0]));
    return ranks.size() == number;
  }));
  return ranks;
}

}  // namespace tokamak::test
