// A step within compile.memory_budget_gib that computes no more again than it must. What choose_recompute counts
// differs from what the step takes in the end: it comes before fusion, before buckets are gathered ahead, before what
// is made of parameters once a step leaves the program. Tests: tests/compile/fill_budget_test.cpp.
#pragma once

#include "compile/compiled_step.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace tokamak {

/// Finds what choose_recompute has to be told, in GiB, so that the intermediate values take 0.95 to 1 of `asked`.
class BudgetSearch {
 public:
  explicit BudgetSearch(double asked) : asked_(asked), told_(asked) {}

  /// The same where an arena of so many bytes is needed in any case, as an update's: it begins with the fastest of what
  /// was told already that fits beside it.
  BudgetSearch beside(int64_t arena) const;

  /// What to compile with next; at first `asked`.
  double told() const { return told_; }
  bool is_done() const { return is_done_; }
  /// A step that was compiled with told(). True when it is the best so far: of those that fit the fastest, as
  /// predicted, and of equal ones the fullest; else the smallest.
  bool add(const CompiledStep& step);

 private:
  struct Try {
    double told = 0, used = 0;  // `used` as a share of `asked`; 0: there is none yet
    int64_t arena = 0, buffers = 0;
    bool computes_again = false;
    double seconds = 0;  // predicted
  };

  bool is_better(double used, double seconds) const;
  bool is_dear() const;
  bool is_over(double used, bool computes_again) const;
  bool is_stuck(double used, bool has_noticed, bool computes_again) const;
  double choose(double used, bool has_noticed) const;

  double share(int64_t arena, int64_t buffers) const;

  double asked_, told_;
  int64_t least_arena_ = 0;
  Try fits_, too_much_;  // the closest on each side
  int alike_ = 0;        // the last tries, so many, fitted; or below 0, so many were too much
  double best_ = 0;      // share of the best
  double best_seconds_ = 0;
  std::vector<Try> tries_;
  bool rises_ = false;  // it is told more, as nothing less is possible
  bool is_done_ = false;
};

inline const CompiledStep& step_of(const CompiledStep& step) { return step; }

/// The best that `compile` gives, of what it is told: a step, or something that has one (step_of). Without a budget
/// (`asked` 0) it compiles once.
template <typename Compile>
auto fill_budget(BudgetSearch& search, const Compile& compile) {
  auto best = compile(search.told());
  search.add(step_of(best));
  while (!search.is_done()) {
    auto other = compile(search.told());
    if (search.add(step_of(other))) best = std::move(other);
  }
  return best;
}
template <typename Compile>
auto fill_budget(BudgetSearch&& search, const Compile& compile) {
  return fill_budget(search, compile);
}

}  // namespace tokamak
