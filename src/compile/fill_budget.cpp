#include "compile/fill_budget.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tokamak {
namespace {

constexpr int kTries = 12;
constexpr double kGiB = double(int64_t(1) << 30), kFull = 0.95, kAim = 0.99;

// Of the way between what fits and what is too much, how close to either the next try may be.
constexpr double kMargin = 0.1;

// What a step is told next that has not noticed that it was told less, as a share of that; and of the budget, what is
// little enough to see that no less is possible.
constexpr double kUnnoticed = 0.8, kLittle = 0.5;

// As a share of the budget: between tries so close there is one value that is computed again or not.
constexpr double kClose = 0.002;

bool chose_recompute(const CompiledStep& step) {
  auto chose = [](const PassReport& report) { return report.name == "choose_recompute" && report.changed; };
  return std::ranges::any_of(step.programs,
                             [&](const CompiledGraph& program) { return std::ranges::any_of(program.reports, chose); });
}

}  // namespace

bool BudgetSearch::add(const CompiledStep& step) {
  if (asked_ <= 0) {
    is_done_ = true;
    return true;
  }
  double used = double(step.intermediate_bytes()) / kGiB / asked_;
  bool computes_again = chose_recompute(step), better = is_better(used);
  if (better) best_ = used;
  ++tries_;
  bool has_noticed = computes_again && (too_much_.used == 0 || used < too_much_.used);
  is_done_ = is_over(used, has_noticed, computes_again);
  bool fits = used <= 1;
  alike_ = fits ? std::max(alike_, 0) + 1 : std::min(alike_, 0) - 1;
  (fits ? fits_ : too_much_) = {told_, used, computes_again};
  if (!is_done_) told_ = choose(used, has_noticed);
  return better;
}

bool BudgetSearch::is_better(double used) const {
  if (best_ == 0) return true;
  return best_ > 1 ? used < best_ : used <= 1 && used > best_;
}

bool BudgetSearch::is_over(double used, bool has_noticed, bool computes_again) const {
  if (tries_ == kTries) return true;
  if (fits_.used > 0 && too_much_.used > 0 && too_much_.told - fits_.told < kClose * asked_) return true;
  if (used <= 1) return used >= kFull || !computes_again;
  return computes_again && !has_noticed && fits_.used == 0 && told_ < kLittle * asked_;
}

// Between two tries on a line, but not too close to one of them, and in the middle where the line misses the same way
// again; else by as much as the last one missed.
double BudgetSearch::choose(double used, bool has_noticed) const {
  // What has not noticed its budget may be far above what does: no line leads there.
  if (fits_.used > 0 && too_much_.used > 0 && !too_much_.computes_again) return std::sqrt(fits_.told * too_much_.told);
  if (fits_.used > 0 && too_much_.used > 0) {
    double part = (kAim - fits_.used) / (too_much_.used - fits_.used);
    return std::lerp(fits_.told, too_much_.told, std::abs(alike_) > 1 ? 0.5 : std::clamp(part, kMargin, 1 - kMargin));
  }
  double next = told_ + (kAim - used) * asked_;
  if (used > 1 && !has_noticed) next = std::min(next, kUnnoticed * told_);
  return next > 0 ? next : told_ / used;
}

}  // namespace tokamak
