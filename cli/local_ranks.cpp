#include "cli/local_ranks.h"

#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/file.h"

namespace tokamak {
namespace {

constexpr std::chrono::seconds kPatience{20};

// This program's arguments, as the system has them.
std::vector<std::string> own_arguments() {
  std::vector<std::string> arguments;
  std::string text = read_file("/proc/self/cmdline");
  for (size_t at = 0; at < text.size(); at = text.find('\0', at) + 1) arguments.emplace_back(text.c_str() + at);
  return arguments;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  return all;
}

}  // namespace

void LocalRanks::start(int world, int port, const std::string& token) {
  std::vector<std::string> arguments = own_arguments();
  std::vector<char*> argv = pointers(arguments);
  argv.push_back(nullptr);
  for (int rank = 1; rank < world; ++rank) {
    std::vector<std::string> own = {fmt::format("RANK={}", rank),          fmt::format("LOCAL_RANK={}", rank),
                                    fmt::format("WORLD_SIZE={}", world),   "MASTER_ADDR=127.0.0.1",
                                    fmt::format("MASTER_PORT={}", port),   fmt::format("TOKAMAK_PORT={}", port),
                                    fmt::format("TOKAMAK_TOKEN={}", token)};
    std::vector<char*> environment = pointers(own);  // the first of a name counts
    for (char** old = environ; *old; ++old) environment.push_back(*old);
    environment.push_back(nullptr);
    pid_t process = -1;
    int error = ::posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, argv.data(), environment.data());
    if (error != 0)
      user_error("[mesh] cannot start the process of rank {}: {}; allow more processes (ulimit -u), or use fewer ranks",
                 rank, std::strerror(error));
    processes_.push_back(process);
  }
}

LocalRanks::~LocalRanks() {
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (pid_t process : processes_) {
    while (::waitpid(process, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) ::kill(process, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

}  // namespace tokamak
