// What may be spent on a training, as one types it: 1000gpuh, 7days, 5000USD or 1e21FLOP.
// Tests: tests/scaling/budget_test.cpp.
#pragma once

#include "config/cluster_config.h"

#include <string>
#include <string_view>

namespace tokamak {

enum class BudgetUnit { kGpuHours, kHours, kDays, kDollars, kFlops };

struct Budget {
  double amount = 0;
  BudgetUnit unit = BudgetUnit::kGpuHours;
};

/// For help and messages.
inline constexpr const char* kBudgetForm = "a number with gpuh, h, days, USD or FLOP, as 1000gpuh";

/// The number as it is typed elsewhere (10k, 1e3); UserError for anything else, and for what is not more than 0.
Budget parse_budget(std::string_view text);

/// "1000 GPU hours".
std::string describe(const Budget& budget);

/// Seconds that so many of the cluster's GPUs train for it; 0 for FLOPs, of which no time is known before a speed is.
/// UserError for money where the cluster has no price.
double seconds_of(const Budget& budget, const ClusterConfig& cluster, int64_t gpus);

}  // namespace tokamak
