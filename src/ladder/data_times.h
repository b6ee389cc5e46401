// What a rung's tokens a second mean for a run: the tokens that it sees in five minutes, and the hours of an epoch.
// Tests: tests/ladder/data_times_test.cpp.
#pragma once

#include "ladder/ladder.h"

#include <span>
#include <string>

namespace tokamak {

inline constexpr double kShortRun = 300;  // seconds

double tokens_in_short_run(const RungResult& rung);
/// Hours of `epoch_tokens` tokens.
double epoch_hours(const RungResult& rung, int64_t epoch_tokens);

/// A table with a line for each rung that ran; `epoch_tokens` 0: without the epochs.
std::string format_data_times(std::span<const RungResult> rungs, int64_t epoch_tokens);

}  // namespace tokamak
