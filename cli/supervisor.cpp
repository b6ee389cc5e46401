#include "cli/supervisor.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "base/signals.h"
#include "cli/end_times.h"
#include "cli/restart_budget.h"
#include "cli/start_again.h"
#include "cli/streams.h"

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr const char* kSupervisor = "TOKAMAK_SUPERVISOR";  // the process that has started this one so
constexpr std::chrono::milliseconds kLook{20};

pid_t start(std::vector<std::string> variables) {
  pid_t process = -1;
  variables.push_back(supervisor_variable());
  int error = start_again(std::move(variables), process);
  if (error != 0)
    user_error("[restarts] cannot start the process that trains: {}; allow more processes (ulimit -u)",
               std::strerror(error));
  return process;
}

// As waitpid tells it. A terminal's Ctrl-C reaches the process by itself: two would end it at once. One that is stopped
// while this one is not, which counts the looks, is killed.
int wait_for(pid_t process, const StopSignal& stop) {
  constexpr int kMostLooks = 500;  // 10 seconds
  bool told = false, stopped = false;
  for (int status = 0, looks = 0;; std::this_thread::sleep_for(kLook)) {
    if (::waitpid(process, &status, WNOHANG | WUNTRACED | WCONTINUED) == process) {
      if (WIFEXITED(status) || WIFSIGNALED(status)) return status;
      stopped = WIFSTOPPED(status);
      looks = 0;
    }
    if (stopped && ++looks == kMostLooks) ::kill(process, SIGKILL);
    if (stop.requested() && !std::exchange(told, true)) ::kill(process, SIGTERM);
  }
}

// The ranks of a leader that is gone, which are this process's children then. They may save what they have, unless they
// are stopped.
void wait_for_ranks() {
  auto late = Clock::now() + end_times::kToSave;
  int status = 0;
  for (pid_t rank; (rank = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) >= 0; std::this_thread::sleep_for(kLook)) {
    if (rank > 0 && WIFSTOPPED(status)) ::kill(rank, SIGKILL);
    if (Clock::now() < late) continue;
    std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
    for (std::istream_iterator<pid_t> child(children), end; child != end; ++child) ::kill(*child, SIGKILL);
    late = Clock::now() + end_times::kForKilled;
  }
}

int exit_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

}  // namespace

int supervise(const fs::path& run, int64_t restarts, const std::vector<std::string>& variables) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  StopSignal stop;
  RestartBudget budget(run, restarts);
  while (true) {
    int status = wait_for(start(variables), stop);
    wait_for_ranks();
    if (stop.requested() || !is_death(status)) return exit_status(status) == kLostRanksStatus ? 1 : exit_status(status);
    std::string cause = cause_of_end(run, fmt::format("the process that trains {}", describe_end(status)));
    budget.take(cause);
    print_to_stderr(fmt::format("starting again, from the newest good checkpoint: {}\n", printable(cause)));
  }
}

std::string supervisor_variable() { return fmt::format("{}={}", kSupervisor, ::getpid()); }

bool is_supervised() {
  const char* supervisor = std::getenv(kSupervisor);
  return supervisor && std::to_string(::getppid()) == supervisor;
}

void stop_with_supervisor() {
  if (is_supervised()) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

int lost_ranks_status() { return is_supervised() ? kLostRanksStatus : 1; }

}  // namespace tokamak
