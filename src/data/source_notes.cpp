#include "data/source_notes.h"

#include <utility>

#include "base/error.h"
#include "data/open_source.h"
#include "data/passed_over.h"

namespace tokamak {

namespace {

constexpr int64_t kTold = 3;           // of a kind
constexpr size_t kMostKnown = 10'000;  // beyond them a sentence may count twice
constexpr size_t kMostEndings = 1000;

}  // namespace

void SourceNotes::add(const std::string& kind, const std::string& sentence) {
  std::lock_guard lock(mutex_);
  if (known_.contains(sentence)) return;
  if (known_.size() < kMostKnown) known_.insert(sentence);
  if (++counts_[kind] <= kTold) untold_.push_back(sentence);
}

void SourceNotes::pass_over(const std::string& member) {
  std::lock_guard lock(mutex_);
  std::string ending = ending_of(member);
  if (members_.size() >= kMostEndings && !members_.contains(ending)) ending = "others";
  ++members_[ending];
}

void SourceNotes::begin_again() {
  std::lock_guard lock(mutex_);
  members_.clear();
}

std::vector<std::string> SourceNotes::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(untold_, {});
}

std::vector<std::string> SourceNotes::totals() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> totals;
  for (const auto& [kind, count] : counts_)
    if (count > kTold) totals.push_back(fmt::format("and {} more like these ({})", count - kTold, kind));
  if (!members_.empty())
    totals.push_back(
        fmt::format("passed over members of archives: {}; --members takes other names", format_counts(members_)));
  return totals;
}

void note(const SourceOptions& options, std::string_view kind, const std::string& sentence) {
  if (options.notes) options.notes->add(std::string(kind), sentence);
}

void tell_notes(const SourceOptions& options, const std::function<void(const std::string&)>& tell) {
  if (!options.notes) return;
  for (const std::string& sentence : options.notes->take()) tell(sentence);
}

}  // namespace tokamak
