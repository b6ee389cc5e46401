// A plan of a training as one self-contained HTML page: nothing comes from the network. Tests:
// tests/pages/plan_html_test.cpp.
#pragma once

#include "advise/format_plan.h"

#include <string>

namespace tokamak {

/// Slower layouts are of no use to look at.
inline constexpr size_t kMostRows = 30;

/// The best layout and its command, charts of time and memory of the layouts found, by kind, and the plan's text.
std::string plan_html(const TrainingPlan& plan);

}  // namespace tokamak
