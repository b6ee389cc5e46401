// When the launches of a plan run, by what each is predicted to take. Tests: tests/plan/timeline_test.cpp.
#pragma once

#include "plan/plan.h"

namespace tokamak {

/// When a launch runs, in seconds from the beginning of the run.
struct Span {
  double begin = 0, end = 0;
};

/// By launch. A launch begins when its stream is free and what it waits for is done. Launches that run at the same time
/// on streams of one resource get equal shares of it. Beside a launch of another resource they go on at the rate that
/// its taken_share leaves them; it is not slowed down by them. With one stream each begins where the last one ended.
std::vector<Span> simulate(const Plan& plan);

/// Seconds that the plan would take if its collectives took none.
double seconds_without_collectives(const Plan& plan);

/// Seconds from the beginning of a run to the end of its last launch.
double end_of_timeline(const std::vector<Span>& timeline);

/// By launch: of a collective's span, the parts in which nothing but collectives runs; of other launches none.
std::vector<std::vector<Span>> exposed_spans(const Plan& plan, const std::vector<Span>& timeline);

/// By launch: the seconds of those.
std::vector<double> exposed_seconds(const Plan& plan, const std::vector<Span>& timeline);

}  // namespace tokamak
