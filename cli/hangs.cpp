#include "cli/hangs.h"

#include <fmt/core.h>

#include <cstdlib>
#include <utility>

#include "base/printable.h"
#include "base/signals.h"
#include "base/system.h"
#include "base/thread_stacks.h"
#include "cli/end_times.h"
#include "cli/local_ranks.h"
#include "cli/ranks.h"
#include "cli/streams.h"
#include "cli/supervisor.h"

namespace tokamak {
namespace {

HangWatch::Options hang_options(const RunConfig& config, std::vector<std::string> names) {
  return {.least_seconds = config.mesh.hang_seconds,
          .names = std::move(names),
          .hurries = [] { return stopped_status() != 0; },
          .grace = end_times::kByItself};
}

std::string name_of(int rank, const std::string& device) {
  return fmt::format("rank {} on {} ({})", rank, host_name(), device);
}

// Where it hangs is the question then.
void end_hung_process(const std::string& reason, bool tells) {
  tell_stacks();
  end_late_process(reason, tells);
}

}  // namespace

bool tells(const StoreClient& store) { return store.rank() == 0 || store.has_lost_leader(); }

void end_late_process(const std::string& reason, bool tells) {
  if (tells) print_to_stderr(fmt::format("{}error: {}\n", rank_prefix(), printable(reason)));
  std::_Exit(lost_ranks_status());
}

ProcessHangs::ProcessHangs(const RunConfig& config, StoreClient& store, const std::string& device)
    : store_(store), names_(exchange_names(config, device)), watch_(hang_options(config, names_), watched()) {}

ProcessHangs::~ProcessHangs() { store_.answer_roll_call({}); }

HangWatch::Run ProcessHangs::watched() {
  return {.mine = {progress_},
          .ask = [this](double seconds) { return ask(seconds); },
          .fail = [this](const std::string& reason) { fail(reason); },
          .failure = [this] { return store_.failure(); },
          .end = [this](const std::string& why) { end_hung_process(why, tells(store_)); }};
}

// From here on all ranks answer. One that has been stopped since it joined does not, and has no name yet.
std::vector<std::string> ProcessHangs::exchange_names(const RunConfig& config, const std::string& device) {
  store_.answer_roll_call([progress = progress_] { return print(progress->report()); });
  std::vector<std::string> numbers;
  for (int rank = 0; rank < store_.world(); ++rank) numbers.push_back(fmt::format("rank {}", rank));
  HangWatch until_named(hang_options(config, std::move(numbers)), watched());
  return store_.exchange("names", store_.rank(), store_.world(), name_of(store_.rank(), device));
}

// A rank that has not begun or has left says nothing.
RankAnswers ProcessHangs::ask(double seconds) {
  RankAnswers answers;
  try {
    for (const std::optional<std::string>& text : store_.roll_call(seconds))
      answers.push_back(text ? std::optional(text->empty() ? RankReport() : parse_rank_report(*text)) : std::nullopt);
  } catch (const CommunicationError&) {
    answers.assign(size_t(store_.world()), RankReport());  // the run has failed meanwhile
  }
  leader_answers_ = answers[0].has_value();
  return answers;
}

// A leader that does not answer tells nobody, and keeps the lock of the run's folder.
void ProcessHangs::fail(const std::string& reason) {
  if (leader_answers_) return store_.fail(reason);
  end_stopped_leader();
  store_.lose_leader(reason);
}

ThreadHangs::ThreadHangs(const RunConfig& config, int ranks) : config_(config) {
  for (int rank = 0; rank < ranks; ++rank) progress_.push_back(std::make_shared<RankProgress>());
}

void ThreadHangs::watch(std::function<void(const std::string&)> abort) {
  abort_ = std::move(abort);
  auto ask = [this](double) {
    RankAnswers answers;
    for (const auto& rank : progress_) answers.push_back(rank->report());
    return answers;
  };
  watch_.emplace(hang_options(config_, names()),
                 HangWatch::Run{.mine = progress_,
                                .ask = ask,
                                .fail = [this](const std::string& reason) { fail(reason); },
                                .failure = [this] { return failure(); },
                                .end = [](const std::string& reason) { end_hung_process(reason, true); }});
}

std::vector<std::string> ThreadHangs::names() const {
  std::vector<std::string> names;
  for (size_t rank = 0; rank < progress_.size(); ++rank) names.push_back(name_of(int(rank), "a thread on the CPU"));
  return names;
}

std::string ThreadHangs::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void ThreadHangs::fail(const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    failure_ = reason;
  }
  abort_(reason);
}

}  // namespace tokamak
