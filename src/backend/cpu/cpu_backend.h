// The CPU backend: oneDNN or CBLAS for matmuls, own kernels for attention, tiles for groups.
#pragma once

#include "backend/backend.h"
#include "graph/platform.h"

namespace tokamak::cpu {

/// `sharers`: backends, of this process or others, that share the memory.
std::unique_ptr<Backend> make_backend(int sharers = 1);

/// This machine, its rates measured now (about half a second).
Platform measure_platform();

/// A typical two-core machine, but for the threads that its kernels are planned for: where nothing is measured.
Platform nominal_platform(int threads = 2);

}  // namespace tokamak::cpu
