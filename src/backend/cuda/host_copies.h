// Copies of a GPU's tensors to pinned memory of the host, beside its kernels. Tests:
// tests/backend/cuda/host_copies_test.cpp.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/context.h"

namespace tokamak::cuda {

/// Null: the system has no more memory that may be pinned.
std::unique_ptr<Memory> allocate_pinned(int64_t bytes);

/// On a stream of their own; `streams` must outlive them.
std::unique_ptr<HostCopies> copy_beside(StreamContexts& streams);

}  // namespace tokamak::cuda
