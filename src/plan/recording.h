// Whether a plan's launches are recorded once and replayed (a CUDA graph), or made one by one in each run.
#pragma once

#include "plan/plan.h"

namespace tokamak {

/// Not where a stream reaches into the next run, of which a recording knows nothing. And not where collectives have a
/// stream of their own and the host makes all launches in less than half of the predicted time: the branches of a
/// recording share the device's queues, and one that waits for another rank holds others back.
bool is_to_record(const Plan& plan);

}  // namespace tokamak
