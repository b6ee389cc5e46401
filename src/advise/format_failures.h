// What a plan says of failures. Tests: tests/advise/failures_test.cpp.
#pragma once

#include "advise/format_plan.h"

#include <nlohmann/json_fwd.hpp>

namespace tokamak {

/// The first layout's. Empty where no failure is to be expected.
std::string failure_lines(const TrainingPlan& plan);

nlohmann::ordered_json failures_json(const TrainingPlan& plan);

}  // namespace tokamak
