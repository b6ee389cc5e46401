// When the launches of a plan run, by what each is predicted to take. Tests: tests/plan/timeline_test.cpp.
#pragma once

#include "plan/plan.h"

namespace tokamak {

/// Seconds from the beginning of a run to the end of its last launch. A launch begins when its stream is free and what
/// it waits for is done. Launches that run at the same time on streams of one resource get equal shares of it; those of
/// different resources do not slow each other down. With one stream this is the sum of the launches.
double end_of_timeline(const Plan& plan);

}  // namespace tokamak
