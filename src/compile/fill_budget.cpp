#include "compile/fill_budget.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

// What a stage of a pipeline is told makes a difference only between two numbers that are close to each other.
constexpr int kTries = 8, kTriesOfStage = 12;
constexpr double kGiB = double(int64_t(1) << 30), kFull = 0.95, kAim = 0.99;

// Of the way between what fits and what is too much, how close to either the next try may be.
constexpr double kMargin = 0.1;

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
  is_done_ = is_over(used, computes_again);
  bool fits = used <= 1;
  alike_ = tries_ > 1 && fits == last_fits_ ? alike_ + 1 : 1;
  last_fits_ = fits;
  (fits ? fits_ : too_much_) = {told_, used, computes_again};
  if (!is_done_) told_ = choose(used, computes_again);
  return better;
}

bool BudgetSearch::is_better(double used) const {
  if (best_ == 0) return true;
  return best_ > 1 ? used < best_ : used <= 1 && used > best_;
}

bool BudgetSearch::is_over(double used, bool computes_again) const {
  if (tries_ == (growth_ > 1 ? kTriesOfStage : kTries)) return true;
  if (used <= 1) return used >= kFull || !computes_again;
  // Told less, it computes no more again: no less is possible.
  return computes_again && fits_.used == 0 && too_much_.used > 0 && used >= too_much_.used;
}

// Between two tries on a line, but not too close to one of them, and in the middle where the line misses the same way
// again; else by what a step is expected to grow.
double BudgetSearch::choose(double used, bool computes_again) const {
  // What has not noticed its budget may be far above what does: no line leads there.
  if (fits_.used > 0 && too_much_.used > 0 && !too_much_.computes_again) return std::sqrt(fits_.told * too_much_.told);
  if (fits_.used > 0 && too_much_.used > 0) {
    double part = (kAim - fits_.used) / (too_much_.used - fits_.used);
    return std::lerp(fits_.told, too_much_.told, alike_ > 1 ? 0.5 : std::clamp(part, kMargin, 1 - kMargin));
  }
  double next = told_ + (kAim - used) * asked_ / growth_;
  if (used > 1 && !computes_again) next = std::min(next, kAim * asked_ / growth_);  // it has not noticed the budget
  return next > 0 ? next : told_ / used;
}

}  // namespace tokamak
