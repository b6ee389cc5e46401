// Activity records by CUPTI, the toolkit's library for profilers: opened when they are asked for, and optional.
// Tests: tests/backend/cuda/device_trace_test.cpp.
#pragma once

#include "backend/device_trace.h"

namespace tokamak::cuda {

/// Of all GPUs of this process; null where CUPTI is not there, was not built in, or refuses (another profiler watches).
std::unique_ptr<DeviceTrace> trace_by_cupti();

}  // namespace tokamak::cuda
