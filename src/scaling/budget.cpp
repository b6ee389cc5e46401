#include "scaling/budget.h"

#include "base/error.h"
#include "config/number.h"

#include <fmt/core.h>

#include <cmath>
#include <optional>

namespace tokamak {
namespace {

struct UnitName {
  std::string_view typed, told;
  BudgetUnit unit;
};

// A name that another one ends with stands behind it.
constexpr UnitName kUnits[] = {
    {"gpuh", "GPU hours", BudgetUnit::kGpuHours}, {"hours", "hours", BudgetUnit::kHours},
    {"h", "hours", BudgetUnit::kHours},           {"days", "days", BudgetUnit::kDays},
    {"day", "days", BudgetUnit::kDays},           {"d", "days", BudgetUnit::kDays},
    {"USD", "dollars", BudgetUnit::kDollars},     {"FLOPs", "FLOPs", BudgetUnit::kFlops},
    {"FLOP", "FLOPs", BudgetUnit::kFlops},
};

constexpr double kHour = 3600;

}  // namespace

Budget parse_budget(std::string_view text) {
  for (const UnitName& name : kUnits) {
    if (!text.ends_with(name.typed)) continue;
    std::optional<double> amount = parse_real(text.substr(0, text.size() - name.typed.size()));
    if (amount && *amount > 0 && std::isfinite(*amount)) return {*amount, name.unit};
    break;
  }
  user_error("[budget] expected {}, 7days, 5000USD or 1e21FLOP, got '{}'; give a number above 0 and its unit",
             kBudgetForm, text);
}

std::string describe(const Budget& budget) {
  for (const UnitName& name : kUnits)
    if (name.unit == budget.unit) return fmt::format("{:g} {}", budget.amount, name.told);
  return "";
}

double seconds_of(const Budget& budget, const ClusterConfig& cluster, int64_t gpus) {
  switch (budget.unit) {
    case BudgetUnit::kGpuHours: return budget.amount * kHour / double(gpus);
    case BudgetUnit::kHours: return budget.amount * kHour;
    case BudgetUnit::kDays: return budget.amount * 24 * kHour;
    case BudgetUnit::kDollars:
      if (!cluster.price.is_known())
        user_error(
            "[budget] expected a cluster with a price for a budget of money, got {}, of which none is published; give "
            "GPU hours (gpuh), or set price in a cluster file",
            cluster.name);
      return budget.amount / cluster.price.value * kHour / double(gpus);
    case BudgetUnit::kFlops: return 0;
  }
  return 0;
}

}  // namespace tokamak
