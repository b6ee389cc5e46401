// What a budget buys, for people and for programs. Tests: tests/scaling/budget_plan_test.cpp.
#pragma once

#include "scaling/budget_plan.h"

#include <string>

namespace tokamak {

/// The laws in a table, the presets in another, and a line that plans the best of them. `typed`: what `tokamak plan`
/// takes of the cluster, each with a space before it.
std::string format_budget(const BudgetPlan& plan, const std::string& typed);

/// One line of JSON: seconds, FLOPs (6 for each parameter and token), nats a token.
std::string budget_json(const BudgetPlan& plan);

}  // namespace tokamak
