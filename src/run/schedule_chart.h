// The learning rate over a run's steps, drawn with characters. Tests: tests/run/schedule_chart_test.cpp.
#pragma once

#include "config/optimizer_config.h"

#include <string>

namespace tokamak {

/// A line that says the schedule in words, then the rate from 0 to the highest upwards over steps 1 to `steps` to the
/// right, in ASCII and at most 80 columns. A column stands for the last of its steps, so that the last one is the
/// run's.
std::string draw_schedule(const OptimizerConfig& optimizer, int64_t steps);

}  // namespace tokamak
