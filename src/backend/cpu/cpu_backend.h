// The CPU backend: oneDNN or CBLAS for matmuls, own kernels for attention, tiles for groups.
#pragma once

#include "backend/backend.h"

namespace tokamak::cpu {

std::unique_ptr<Backend> make_backend();

/// Rates of this machine, measured now (about half a second).
Target measure_target();

/// A typical two-core machine: for planning and explaining without measuring.
Target nominal_target();

}  // namespace tokamak::cpu
