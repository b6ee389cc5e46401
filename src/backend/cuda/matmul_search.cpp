#include "backend/cuda/matmul_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tokamak::cuda {
namespace {

constexpr double kStepSeconds = 0.55;  // for a matmul that were a whole step
constexpr double kLeastSeconds = 3e-3, kMostSeconds = 80e-3;
constexpr double kHeavy = 0.01, kLight = 0.005;  // shares of a step
constexpr size_t kForHeavy = 64, kForOthers = 32, kForLight = 8;

constexpr size_t kAtLeast = 3, kAtOnce = 16;  // candidates of the first pass
constexpr double kFirstPass = 0.8;            // of the effort
constexpr double kTie = 1.005;
constexpr double kTick = 1e-7;  // no run is shorter

// One pass over those that are left.
struct Stage {
  double slower;  // this much above the best is out of the race
  size_t most;    // candidates
  int rounds;     // at most
};
constexpr Stage kStages[] = {{1.15, 10, 2}, {1.06, 5, 4}, {1.02, 3, 9}};

struct Trial {
  size_t candidate;
  double seconds;
  std::vector<double> runs;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

class Search {
 public:
  Search(const std::vector<int64_t>& workspaces, const SearchEffort& effort, const RunCandidates& run)
      : workspaces_(workspaces), effort_(effort), run_(run), end_(std::min(workspaces.size(), effort.candidates)) {}

  std::optional<SearchResult> find() {
    if (!try_first()) return std::nullopt;
    try_others();
    result_.tried = field_.size();
    for (size_t stage = 0; stage < std::size(kStages); ++stage) {
      keep_best(kStages[stage].slower, kStages[stage].most);
      if (field_.size() == 1) break;
      compare(kStages[stage].rounds, left() / double(std::size(kStages) - stage));
    }
    return conclude();
  }

 private:
  std::vector<CandidateRun> run(const std::vector<size_t>& turns) {
    std::vector<CandidateRun> runs = run_(turns);
    for (const CandidateRun& r : runs) {
      if (std::isfinite(r.seconds)) spent_ += r.seconds;
      result_.loading_seconds += r.loading_seconds;
    }
    return runs;
  }

  // Loading beyond what is allowed for it is taken from the runs.
  double left() const {
    return effort_.seconds - spent_ - std::max(0.0, result_.loading_seconds - effort_.loading_seconds);
  }

  // The first that runs is what the others are compared with.
  bool try_first() {
    for (first_ = 0; first_ < end_; ++first_)
      if (double seconds = run({first_})[0].seconds; std::isfinite(seconds)) {
        result_.first_seconds = seconds;
        field_.push_back({first_, seconds, {}});
        return true;
      }
    return false;
  }

  // Some at a time, the first one after them again: what it takes tells how the clock has changed meanwhile.
  void try_others() {
    double unit = std::max(result_.first_seconds, kTick), before = unit;
    for (size_t next = first_ + 1; next < end_;) {
      double seconds = left() - (1 - kFirstPass) * effort_.seconds;
      if (seconds <= 0 && field_.size() >= kAtLeast) break;
      size_t count = size_t(std::clamp(seconds / unit, 1.0, double(std::min(kAtOnce, end_ - next))));
      std::vector<size_t> turns(count);
      std::iota(turns.begin(), turns.end(), next);
      turns.push_back(first_);
      std::vector<CandidateRun> runs = run(turns);
      double after = runs.back().seconds, now = std::min(before, after);
      for (size_t i = 0; i < count; ++i)
        if (double s = runs[i].seconds; std::isfinite(s)) field_.push_back({next + i, s / now * unit, {}});
      if (std::isfinite(after)) before = after;
      next += count;
    }
  }

  void sort() {
    std::sort(field_.begin(), field_.end(), [](const Trial& x, const Trial& y) {
      return x.seconds != y.seconds ? x.seconds < y.seconds : x.candidate < y.candidate;
    });
  }

  void keep_best(double slower, size_t most) {
    sort();
    if (field_.size() > 1) result_.runner_up_seconds = field_[1].seconds;
    std::erase_if(field_, [limit = slower * field_[0].seconds](const Trial& t) { return !(t.seconds <= limit); });
    if (field_.size() > most) field_.erase(field_.begin() + long(most), field_.end());
  }

  // In turns, so that a change of the clock meets all alike. Rather few of them often than all of them once.
  void compare(int rounds, double seconds) {
    size_t affordable = size_t(std::max(2.0, seconds / (2 * field_[0].seconds)));
    if (field_.size() > affordable) field_.erase(field_.begin() + long(affordable), field_.end());
    double round = 0;
    for (const Trial& trial : field_) round += trial.seconds;
    rounds = int(std::clamp(seconds / round, 1.0, double(rounds)));
    std::vector<size_t> turns;
    for (int i = 0; i < rounds; ++i)
      for (const Trial& trial : field_) turns.push_back(trial.candidate);
    std::vector<CandidateRun> runs = run(turns);
    for (size_t i = 0; i < runs.size(); ++i) field_[i % field_.size()].runs.push_back(runs[i].seconds);
    for (Trial& trial : field_) trial.seconds = median(trial.runs);
  }

  std::optional<SearchResult> conclude() {
    sort();
    if (!std::isfinite(field_[0].seconds)) return std::nullopt;
    auto tied_end = std::find_if(field_.begin(), field_.end(),
                                 [limit = kTie * field_[0].seconds](const Trial& t) { return !(t.seconds <= limit); });
    auto best = std::min_element(field_.begin(), tied_end, [&](const Trial& x, const Trial& y) {
      int64_t of_x = workspaces_[x.candidate], of_y = workspaces_[y.candidate];
      return of_x != of_y ? of_x < of_y : x.candidate < y.candidate;
    });
    result_.best = best->candidate;
    result_.seconds = best->seconds;
    if (field_.size() > 1) result_.runner_up_seconds = field_[best == field_.begin() ? 1 : 0].seconds;
    if (!std::isfinite(result_.runner_up_seconds)) result_.runner_up_seconds = 0;
    return result_;
  }

  const std::vector<int64_t>& workspaces_;
  const SearchEffort& effort_;
  const RunCandidates& run_;
  size_t first_ = 0, end_;    // of the list
  std::vector<Trial> field_;  // what is left of those that ran; never empty once one did
  double spent_ = 0;          // seconds
  SearchResult result_;
};

}  // namespace

SearchEffort effort_for(double share) {
  size_t candidates = share >= kHeavy ? kForHeavy : share >= kLight ? kForOthers : kForLight;
  return {candidates, std::clamp(kStepSeconds * share, kLeastSeconds, kMostSeconds)};
}

std::optional<SearchResult> find_fastest(const std::vector<int64_t>& workspaces, const SearchEffort& effort,
                                         const RunCandidates& run) {
  return Search(workspaces, effort, run).find();
}

}  // namespace tokamak::cuda
