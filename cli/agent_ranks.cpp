#include "cli/agent_ranks.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "cli/restart_budget.h"
#include "cli/start_again.h"
#include "cli/supervisor.h"

namespace tokamak {
namespace {

bool has_lost_others(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == kLostRanksStatus; }

// Its agent knows how long machines wait for each other; ranks of a start come together.
std::string join_seconds() {
  constexpr const char *kName = "TOKAMAK_JOIN_SECONDS", *kUsual = "60";
  const char* asked = std::getenv(kName);
  return fmt::format("{}={}", kName, asked ? asked : kUsual);
}

}  // namespace

AgentRanks::AgentRanks(const StartOrder& order, const StartOrder::Member& mine,
                       const std::vector<std::string>& variables) {
  for (int local = 0; local < mine.ranks; ++local) {
    int rank = mine.first_rank + local;
    std::vector<std::string> own = {fmt::format("RANK={}", rank),
                                    fmt::format("LOCAL_RANK={}", local),
                                    fmt::format("WORLD_SIZE={}", order.world),
                                    fmt::format("LOCAL_WORLD_SIZE={}", mine.ranks),
                                    fmt::format("MASTER_ADDR={}", order.host),
                                    fmt::format("MASTER_PORT={}", order.port),
                                    fmt::format("TOKAMAK_PORT={}", order.port),
                                    fmt::format("TOKAMAK_TOKEN={}", order.token),
                                    join_seconds(),
                                    supervisor_variable()};
    own.insert(own.end(), variables.begin(), variables.end());
    pid_t process = -1;
    int error = start_again(std::move(own), process);
    if (error != 0)
      user_error("[agents] cannot start the process of rank {}: {}; allow more processes (ulimit -u)", rank,
                 std::strerror(error));
    ranks_.push_back({.rank = rank, .process = process, .end = {}});
    ++alive_;
  }
}

AgentRanks::~AgentRanks() {
  send(SIGKILL);
  for (Rank& rank : ranks_)
    if (!rank.end) ::waitpid(rank.process, nullptr, 0);
}

void AgentRanks::look(bool run_is_over) {
  for (Rank& rank : ranks_)
    if (!rank.end) look_at(rank, run_is_over);
}

void AgentRanks::look_at(Rank& rank, bool run_is_over) {
  constexpr int kMostLooks = 500;  // 10 seconds of kLook
  int status = 0;
  if (::waitpid(rank.process, &status, WNOHANG | WUNTRACED | WCONTINUED) == rank.process) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      rank.end = status;
      --alive_;
      return;
    }
    rank.stopped_looks = WIFSTOPPED(status) ? 0 : -1;
  }
  if (rank.stopped_looks < 0) return;
  if (++rank.stopped_looks > kMostLooks || run_is_over) ::kill(rank.process, SIGKILL);
}

void AgentRanks::send(int signal_number) {
  for (const Rank& rank : ranks_)
    if (!rank.end) ::kill(rank.process, signal_number);
}

std::optional<int> AgentRanks::end_of_first() const {
  if (ranks_.empty() || ranks_[0].rank != 0 || !ranks_[0].end || is_death(*ranks_[0].end)) return std::nullopt;
  int status = *ranks_[0].end;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string AgentRanks::death() const {
  for (const Rank& rank : ranks_)
    if (rank.end && is_death(*rank.end) && !has_lost_others(*rank.end))
      return fmt::format("the process of rank {} {}", rank.rank, describe_end(*rank.end));
  return "";
}

bool AgentRanks::have_lost_others() const {
  for (const Rank& rank : ranks_)
    if (rank.end && has_lost_others(*rank.end)) return true;
  return false;
}

}  // namespace tokamak
