#include "run/run_events.h"

#include "base/system.h"

#include <chrono>
#include <utility>

namespace tokamak {
namespace {

namespace fs = std::filesystem;

int64_t bytes_in(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code gone;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, gone))
    if (std::uintmax_t size = entry.file_size(gone); !gone) bytes += int64_t(size);
  return bytes;
}

std::vector<RunEvent::Rank> all_ranks(const Target& target, const MeshRanks* ranks) {
  std::vector<RunEvent::Rank> all;
  if (!ranks) return {{host_name(), target.name}};
  for (const std::string& said : ranks->world().exchange(host_name() + '\n' + target.name)) {
    size_t line = said.find('\n');
    all.push_back({said.substr(0, line), said.substr(line + 1)});
  }
  return all;
}

}  // namespace

RunEvents::RunEvents(fs::path out, const Target& target, TrainObserver& observer, const MeshRanks* ranks)
    : out_(std::move(out)), observer_(observer), all_(all_ranks(target, ranks)) {
  if (leads(ranks)) log_.emplace(out_);
}

void RunEvents::add(const RunEvent& event) {
  if (!log_) return;
  log_->add(event);
  if (!log_->warning().empty() && !std::exchange(told_, true)) observer_.message("warning: " + log_->warning());
}

void RunEvents::began(int64_t step) { add({.kind = RunEvent::Kind::kStart, .step = step, .ranks = all_}); }

void RunEvents::saving() { saving_seconds_ += std::exchange(step_seconds_, 0); }

void RunEvents::saved(int64_t step, const fs::path& checkpoint, double seconds, double stall_seconds) {
  double step_seconds = std::exchange(saving_seconds_, 0);
  if (!log_) return;
  add({.kind = RunEvent::Kind::kSave,
       .step = step,
       .checkpoint = checkpoint.filename().string(),
       .seconds = seconds,
       .stall_seconds = stall_seconds,
       .bytes = bytes_in(checkpoint),
       .step_seconds = step_seconds});
}

void RunEvents::take_over(int64_t step, const std::string& cause) {
  log_.emplace(out_);
  failed(step, cause);
}

void RunEvents::fell_back(int64_t step, const std::string& kinds) {
  add({.kind = RunEvent::Kind::kFallback, .step = step, .cause = kinds});
}

void RunEvents::ended(int64_t step, bool stopped) {
  add({.kind = stopped ? RunEvent::Kind::kStop : RunEvent::Kind::kEnd, .step = step});
}

void RunEvents::failed(int64_t step, const std::string& cause) {
  add({.kind = RunEvent::Kind::kFailure, .step = step, .cause = cause});
}

std::string RunEvents::goodput() const {
  if (!log_ || !log_->warning().empty()) return "";
  double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return format_goodput(goodput_of(read_events(out_), now));
}

}  // namespace tokamak
