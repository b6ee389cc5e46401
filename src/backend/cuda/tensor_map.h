// How the copy engine sees a tensor (kernels/hopper.cuh).
#pragma once

#include "graph/type.h"

#include <cuda.h>

#include <array>
#include <cstdint>

namespace tokamak::cuda {

/// A dense tensor of elements of 16 or 8 bits, sizes with the innermost first (a multiple of 16 bytes), as boxes that
/// are at most 128 bytes wide and lie in shared memory swizzled: those of 128 bytes as the tensor cores want them,
/// those of 64 over rows of 64 bytes. `base` is aligned to 16 bytes.
CUtensorMap tensor_map(const void* base, DType dtype, const std::array<int64_t, 3>& sizes,
                       const std::array<int, 3>& box);

}  // namespace tokamak::cuda
