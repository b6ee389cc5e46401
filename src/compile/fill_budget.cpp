#include "compile/fill_budget.h"

#include "base/bytes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace tokamak {
namespace {

constexpr size_t kTries = 12;
constexpr double kFull = 0.95, kAim = 0.99;

// Of the way between what fits and what is too much, how close to either the next try may be.
constexpr double kMargin = 0.1;

// What a step is told next that has not noticed that it was told less, as a share of that; and of the budget, what is
// little enough to see that no less is possible.
constexpr double kUnnoticed = 0.8, kLittle = 0.5;

// What computes all again may take more than what keeps a value here and there, which what is computed again begins
// with: then it is told more and more, so many times the one before, up to so much of the budget.
constexpr double kRise = 1.3, kMostRisen = 2.2;

// As a share of the budget: between tries so close there is one value that is computed again or not.
constexpr double kClose = 0.002;

// What takes so many times as long as a step that is too large computes nearly all again. It may fill the budget by
// chance, as one value that is kept or not can make a jump, and what computes less again need not take more.
constexpr double kDear = 1.1, kWide = 0.1;

double seconds_of(const CompiledStep& step) {
  double seconds = 0;
  for (const ProgramRun& run : step.runs)
    if (run.program < step.programs.size()) seconds += step.programs[run.program].plan.seconds;
  return seconds;
}

bool chose_recompute(const CompiledStep& step) {
  auto chose = [](const PassReport& report) { return report.name == "choose_recompute" && report.changed; };
  return std::ranges::any_of(step.programs,
                             [&](const CompiledGraph& program) { return std::ranges::any_of(program.reports, chose); });
}

}  // namespace

// Of the budget.
double BudgetSearch::share(int64_t arena, int64_t buffers) const {
  return double(std::max(arena, least_arena_) + buffers) / kGiB / asked_;
}

BudgetSearch BudgetSearch::beside(int64_t arena) const {
  BudgetSearch search(asked_);
  search.least_arena_ = arena;
  if (double left = asked_ - double(arena - tries_.back().arena) / kGiB; left > 0) search.told_ = left;
  double least = std::numeric_limits<double>::infinity();
  for (const Try& one : tries_)
    if (search.share(one.arena, one.buffers) <= 1 && one.seconds < least) search.told_ = one.told, least = one.seconds;
  return search;
}

bool BudgetSearch::add(const CompiledStep& step) {
  if (asked_ <= 0) {
    is_done_ = true;
    return true;
  }
  int64_t arena = step.largest().plan.arena_bytes, buffers = step.buffer_bytes();
  double used = share(arena, buffers);
  double seconds = seconds_of(step);
  bool computes_again = chose_recompute(step), better = is_better(used, seconds);
  if (better) best_ = used, best_seconds_ = seconds;
  tries_.push_back({told_, used, arena, buffers, computes_again, seconds});
  bool has_noticed = computes_again && (too_much_.used == 0 || used < too_much_.used);
  bool fits = used <= 1;
  (fits ? fits_ : too_much_) = tries_.back();
  alike_ = fits ? std::max(alike_, 0) + 1 : std::min(alike_, 0) - 1;
  is_done_ = is_over(used, computes_again);
  if (is_done_) return better;
  rises_ &= fits || fits_.used == 0;
  if (rises_)
    told_ *= kRise;
  else if (is_stuck(used, has_noticed, computes_again))
    told_ = kRise * asked_, rises_ = true;
  else
    told_ = choose(used, has_noticed);
  return better;
}

bool BudgetSearch::is_better(double used, double seconds) const {
  if (best_ == 0) return true;
  if (best_ > 1) return used < best_;
  return used <= 1 && (seconds == best_seconds_ ? used > best_ : seconds < best_seconds_);
}

// The closest that fits, when something between it and what is too much may take much less time.
bool BudgetSearch::is_dear() const {
  return fits_.used > 0 && too_much_.used > 0 && fits_.seconds > kDear * too_much_.seconds &&
         too_much_.told - fits_.told > kWide * asked_;
}

bool BudgetSearch::is_over(double used, bool computes_again) const {
  if (tries_.size() == kTries) return true;
  if (fits_.used > 0 && too_much_.used > 0 && too_much_.told - fits_.told < kClose * asked_) return true;
  if (used <= 1) return (used >= kFull && !is_dear()) || !computes_again;
  return rises_ && kRise * told_ > kMostRisen * asked_;
}

// Where nothing less is possible.
bool BudgetSearch::is_stuck(double used, bool has_noticed, bool computes_again) const {
  return used > 1 && computes_again && !has_noticed && fits_.used == 0 && told_ < kLittle * asked_;
}

// Between two tries on a line, but not too close to one of them, and in the middle where the line misses the same way
// again; else by as much as the last one missed.
double BudgetSearch::choose(double used, bool has_noticed) const {
  // What has not noticed its budget may be far above what does: no line leads there.
  if (fits_.used > 0 && too_much_.used > 0 && !too_much_.computes_again) return std::sqrt(fits_.told * too_much_.told);
  if (is_dear() && fits_.used >= kFull) return std::midpoint(fits_.told, too_much_.told);
  if (fits_.used > 0 && too_much_.used > 0) {
    double part = (kAim - fits_.used) / (too_much_.used - fits_.used);
    return std::lerp(fits_.told, too_much_.told, std::abs(alike_) > 1 ? 0.5 : std::clamp(part, kMargin, 1 - kMargin));
  }
  double next = told_ + (kAim - used) * asked_;
  if (used > 1 && !has_noticed) next = std::min(next, kUnnoticed * told_);
  return next > 0 ? next : told_ / used;
}

}  // namespace tokamak
