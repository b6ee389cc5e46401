// Threads where the system may refuse some (ulimit -u, a container's limit of processes).
// Tests: tests/base/start_threads_test.cpp.
#pragma once

#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tokamak {

/// Up to `count` threads that run `work(number)`, fewer where the system refuses more. UserError when it refuses the
/// first.
template <class Work>
std::vector<std::thread> start_threads(int count, Work work) {
  std::vector<std::thread> threads;
  threads.reserve(size_t(count));
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  } catch (const std::system_error& error) {
    if (threads.empty())
      user_error(
          "[threads] cannot start a thread: {}; allow this program more of them (ulimit -u, the container's limit of "
          "processes) or more memory",
          error.code().message());
  }
  return threads;
}

}  // namespace tokamak
