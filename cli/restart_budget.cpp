#include "cli/restart_budget.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/event_log.h"
#include "cli/quote.h"

namespace tokamak {

using Clock = std::chrono::steady_clock;

bool is_death(int status) {
  if (WIFSIGNALED(status)) {
    int number = WTERMSIG(status);
    return number != SIGINT && number != SIGTERM && number != SIGHUP;
  }
  return WEXITSTATUS(status) == kLostRanksStatus || WEXITSTATUS(status) == kOurBugStatus;
}

std::string cause_of_end(const std::filesystem::path& run, const std::string& otherwise) {
  std::vector<RunEvent> events = read_events(run);
  auto failure = std::find_if(events.rbegin(), events.rend(), [](const RunEvent& event) {
    return event.kind == RunEvent::Kind::kFailure || event.kind == RunEvent::Kind::kStart;
  });
  bool told = failure != events.rend() && failure->kind == RunEvent::Kind::kFailure;
  return told ? failure->cause : otherwise;
}

int64_t last_step_told(const std::filesystem::path& run) {
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

void RestartBudget::take(const std::string& cause, bool machine_is_left_out) {
  int64_t step = last_step_told(run_);
  if (died_after_ == step && !machine_is_left_out)
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
  if (std::filesystem::exists(run_))
    EventLog(run_).add({.kind = RunEvent::Kind::kRestart, .step = step, .cause = cause});
}

}  // namespace tokamak
