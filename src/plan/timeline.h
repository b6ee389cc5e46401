// When the launches of a plan run, by what each is predicted to take. Tests: tests/plan/timeline_test.cpp.
#pragma once

#include "cost/stream_clock.h"
#include "plan/plan.h"

#include <string_view>

namespace tokamak {

/// By launch, by the clock of its streams. With one stream each begins where the last one ended.
std::vector<Span> simulate(const Plan& plan);

/// Seconds that the plan would take if its collectives took none.
double seconds_without_collectives(const Plan& plan);

/// Seconds until the first collective over that axis begins; where there is none, of all of the plan.
double seconds_before(const Plan& plan, std::string_view axis);

/// Seconds from the beginning of a run to the end of its last launch.
double end_of_timeline(const std::vector<Span>& timeline);

/// By launch: of a collective's span, the parts in which nothing but collectives runs; of other launches none.
std::vector<std::vector<Span>> exposed_spans(const Plan& plan, const std::vector<Span>& timeline);

/// By launch: the seconds of those.
std::vector<double> exposed_seconds(const Plan& plan, const std::vector<Span>& timeline);

}  // namespace tokamak
