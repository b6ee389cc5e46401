#include "cli/supervisor.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/signals.h"
#include "checkpoint/event_log.h"
#include "cli/end_times.h"
#include "cli/quote.h"
#include "cli/start_again.h"
#include "cli/streams.h"

namespace tokamak {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr const char* kSupervisor = "TOKAMAK_SUPERVISOR";  // the process that has started this one so
constexpr int kLostRanks = 75;                             // EX_TEMPFAIL of sysexits.h
constexpr int kOurBug = 70;
constexpr std::chrono::milliseconds kLook{20};

pid_t start() {
  pid_t process = -1;
  int error = start_again({fmt::format("{}={}", kSupervisor, ::getpid())}, process);
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

bool is_death(int status) {
  if (WIFSIGNALED(status)) {
    int number = WTERMSIG(status);
    return number != SIGINT && number != SIGTERM && number != SIGHUP;
  }
  return WEXITSTATUS(status) == kLostRanks || WEXITSTATUS(status) == kOurBug;
}

int exit_status(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

std::string cause_of(const fs::path& run, int status) {
  std::vector<RunEvent> events = read_events(run);
  auto failure = std::find_if(events.rbegin(), events.rend(), [](const RunEvent& event) {
    return event.kind == RunEvent::Kind::kFailure || event.kind == RunEvent::Kind::kStart;
  });
  bool told = failure != events.rend() && failure->kind == RunEvent::Kind::kFailure;
  return told ? failure->cause : fmt::format("the process that trains {}", describe_end(status));
}

// The last that metrics.jsonl tells of; 0: none.
int64_t last_step(const fs::path& run) {
  constexpr std::streamoff kEnough = 1 << 14;  // bytes of several lines
  std::ifstream file(run / "metrics.jsonl", std::ios::ate);
  if (!file) return 0;
  file.seekg(std::max<std::streamoff>(file.tellg() - kEnough, 0));
  int64_t step = 0;
  for (std::string line; std::getline(file, line);)
    if (nlohmann::ordered_json object = parse_ordered_json(line);
        object.is_object() && object.contains("step") && object["step"].is_number_integer())
      step = object["step"].get<int64_t>();
  return step;
}

// When restarts were, and where the run died before.
class Budget {
 public:
  Budget(fs::path run, int64_t restarts) : run_(std::move(run)), restarts_(restarts) {}

  // UserError where the run should not begin again.
  void take(int64_t step, const std::string& cause) {
    if (died_after_ == step)
      user_error(
          "[restarts] expected the run to get beyond step {}, but it died there twice: {}. `tokamak data ledger {} "
          "--step={}` shows what it read; see to the cause, and the same command goes on",
          step + 1, cause, shell_word(run_.string()), step + 1);
    died_after_ = step;
    while (!taken_.empty() && Clock::now() - taken_.front() > std::chrono::hours(1)) taken_.pop_front();
    if (int64_t(taken_.size()) >= restarts_)
      user_error("[restarts] expected at most {} restarts in an hour, needed one more: {}; the same command goes on",
                 restarts_, cause);
    taken_.push_back(Clock::now());
  }

 private:
  fs::path run_;
  int64_t restarts_;
  std::deque<Clock::time_point> taken_;
  std::optional<int64_t> died_after_;
};

}  // namespace

int supervise(const fs::path& run, int64_t restarts) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  StopSignal stop;
  Budget budget(run, restarts);
  while (true) {
    int status = wait_for(start(), stop);
    wait_for_ranks();
    if (stop.requested() || !is_death(status)) return exit_status(status) == kLostRanks ? 1 : exit_status(status);
    std::string cause = cause_of(run, status);
    int64_t step = last_step(run);
    budget.take(step, cause);
    if (fs::exists(run)) EventLog(run).add({.kind = RunEvent::Kind::kRestart, .step = step, .cause = cause});
    print_to_stderr(fmt::format("starting again, from the newest good checkpoint: {}\n", printable(cause)));
  }
}

bool is_supervised() {
  const char* supervisor = std::getenv(kSupervisor);
  return supervisor && std::to_string(::getppid()) == supervisor;
}

void stop_with_supervisor() {
  if (is_supervised()) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
}

int lost_ranks_status() { return is_supervised() ? kLostRanks : 1; }

}  // namespace tokamak
