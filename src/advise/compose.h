// A layout's step composed of few blocks' (advise/block_costs.h): depth, micro-batches, stages, and what is computed
// again so that it fits. Tests: tests/advise/estimate_test.cpp.
#pragma once

#include "advise/estimate.h"

#include <functional>

namespace tokamak {

struct Composition {
  int64_t layers = 1;
  ParallelLayout layout;
  double available = 0;  // bytes
  Platform platform;     // with the layout's links
  BlockCosts& blocks;
  double most;                  // seconds: what takes longer is not made to fit
  bool may_recompute;           // to fit: what is computed again is not named (compile.recompute)
  const RecomputeCurve& curve;  // what to expect
};

Estimate compose_step(const Composition& c);
Estimate compose_pipeline(const Composition& c);

/// Between two numbers of kinds of values that are computed again: `share` of the way from one to the other.
struct Recomputed {
  int64_t kinds = 0, more = 0;
  double share = 0;
};

/// The least that is within `budget`, by what is needed with so many kinds; of all kinds if even that is too much,
/// which is looked at first where it `frees_little`. The search begins where the curve says that it ends.
Recomputed least_recomputed(double budget, const std::function<double(int64_t kinds)>& needed,
                            const RecomputeCurve& curve, bool frees_little = false);

/// Of the time that the curve tells of what is computed again, what it surely takes.
inline constexpr double kSureAgain = 0.8;

/// A budget for intermediate values in whole hundredths of a GiB, at least one of them.
double budget_gib_of(double bytes);

/// Of a budget, what a compiled step fills on average (compile/fill_budget.h): 0.95 to all of it.
inline constexpr double kFilled = 0.985;

}  // namespace tokamak
