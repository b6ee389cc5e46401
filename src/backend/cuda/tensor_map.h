// How the copy engine sees a tensor (kernels/hopper.cuh).
#pragma once

#include "graph/type.h"

#include <cuda.h>

#include <array>
#include <cstdint>

namespace tokamak::cuda {

/// A dense tensor of 16-bit elements, sizes with the innermost first (which is a multiple of 8), as boxes that are at
/// most 64 elements wide and lie in shared memory swizzled as the tensor cores want them. `base` is aligned to 16
/// bytes.
CUtensorMap tensor_map(const void* base, DType dtype, const std::array<int64_t, 3>& sizes,
                       const std::array<int, 3>& box);

}  // namespace tokamak::cuda
