#include "cli/local_ranks.h"

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
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/socket.h"
#include "cli/end_times.h"
#include "cli/start_again.h"

namespace tokamak {
namespace {

constexpr const char* kLeader = "TOKAMAK_LEADER";  // the process that has started this one
constexpr std::chrono::milliseconds kLook{50};

// Whether a child is stopped, as by SIGSTOP: such a one does nothing more by itself.
bool is_stopped(pid_t process) {
  siginfo_t info = {};
  return ::waitid(P_PID, id_t(process), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == process;
}

}  // namespace

void LocalRanks::start(int world, const std::string& token, StoreServer& store) {
  store.expect_ends();
  watcher_ = std::jthread([this, &store](const std::stop_token& closing) { watch(closing, store); });
  for (int rank = 1; rank < world; ++rank) {
    std::vector<std::string> own = {fmt::format("RANK={}", rank),
                                    fmt::format("LOCAL_RANK={}", rank),
                                    fmt::format("WORLD_SIZE={}", world),
                                    "MASTER_ADDR=127.0.0.1",
                                    fmt::format("MASTER_PORT={}", store.port()),
                                    fmt::format("TOKAMAK_PORT={}", store.port()),
                                    fmt::format("TOKAMAK_TOKEN={}", token),
                                    fmt::format("{}={}", kLeader, ::getpid())};
    pid_t process = -1;
    set_starting(rank);
    int error = start_again(std::move(own), process);
    if (error != 0) {
      store.note_end(rank, "could not be started");  // what ends those that were
      user_error("[mesh] cannot start the process of rank {}: {}; allow more processes (ulimit -u), or use fewer ranks",
                 rank, std::strerror(error));
    }
    std::lock_guard lock(mutex_);
    ranks_[process] = rank;
    starting_ = 0;
  }
}

void LocalRanks::set_starting(int rank) {
  std::lock_guard lock(mutex_);
  starting_ = rank;
}

// With the process that is being made: start() is held up in the system until that runs this program, so it does not
// come to know one that is stopped before.
std::map<pid_t, int> LocalRanks::started() const {
  std::map<pid_t, int> all = ranks_;
  if (starting_ == 0) return all;
  std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
  for (std::istream_iterator<pid_t> child(children), end; child != end; ++child) all.try_emplace(*child, starting_);
  return all;
}

void LocalRanks::end() {
  watcher_.request_stop();
  if (watcher_.joinable()) watcher_.join();
}

void LocalRanks::watch(const std::stop_token& closing, StoreServer& store) {
  constexpr std::chrono::milliseconds kLookAtTheEnd{5};
  std::unique_lock lock(mutex_);
  while (!closing.stop_requested()) {
    reap(store);
    if (!leaves_stopped_ones_) end_stopped(store);
    changed_.wait_for(lock, closing, kLook, [] { return false; });
  }
  for (Deadline begin = deadline_in(0); !ranks_.empty(); std::this_thread::sleep_for(kLookAtTheEnd)) {
    auto patience = store.has_failed() ? end_times::kForOthersAfterFailure : end_times::kForOthers;
    auto now = std::chrono::steady_clock::now();
    for (const auto& [process, rank] : ranks_)
      if (now > begin + patience || (store.has_failed() && is_stopped(process))) ::kill(process, SIGKILL);
    if (now > begin + patience + end_times::kForKilled) return;
    reap(store);
  }
}

// Looks are counted, not seconds: while the terminal has stopped all processes this one does not look.
void LocalRanks::end_stopped(StoreServer& store) {
  for (const auto& [process, rank] : started()) {
    int& looks = stopped_looks_[process];
    looks = is_stopped(process) ? looks + 1 : 0;
    if (looks != kStopped / kLook) continue;
    store.note_end(rank, "was stopped, as by SIGSTOP,");
    ::kill(process, SIGKILL);
  }
}

void LocalRanks::reap(StoreServer& store) {
  std::erase_if(ranks_, [&](const auto& entry) {
    int status = 0;
    if (::waitpid(entry.first, &status, WNOHANG) == 0) return false;
    store.note_end(entry.second, describe_end(status));
    return true;
  });
}

bool is_local_rank() { return std::getenv(kLeader) != nullptr; }

void end_with_leader() {
  const char* leader = std::getenv(kLeader);
  if (!leader) return;
  std::signal(SIGALRM, SIG_DFL);  // which ends the process
  std::signal(SIGUSR2, [](int) { ::alarm(unsigned(end_times::kWithoutLeader.count())); });
  ::prctl(PR_SET_PDEATHSIG, SIGUSR2);
  if (std::to_string(::getppid()) != leader) std::_Exit(EXIT_FAILURE);  // it was gone before
}

void end_stopped_leader() {
  const char* leader = std::getenv(kLeader);
  if (leader && std::to_string(::getppid()) == leader) ::kill(::getppid(), SIGKILL);
}

void outlive_leader() {
  if (std::getenv(kLeader)) std::signal(SIGUSR2, [](int) { ::alarm(unsigned(end_times::kToSave.count())); });
}

}  // namespace tokamak
