// What only measuring can tell, found before a run begins: how long the library's kernels take here, and which matmul
// groups cost more than the simpler ones and the separate kernels that they stand for. Tests:
// tests/train/tune_test.cpp.
#pragma once

#include "backend/backend.h"
#include "config/config.h"

namespace tokamak {

/// The target with measured_seconds and plain_matmuls for this run. What target.measurements (a file) remembers is not
/// measured again. A target that is not tunable comes back as it is.
Target tune(const RunConfig& config, Target target, Backend& backend);

}  // namespace tokamak
