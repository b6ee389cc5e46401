// A flat group of two inputs as a function in device code, for kernels that apply it where they have its operands.
#pragma once

#include "ops/group_body.h"

#include <string>

namespace tokamak::cuda {

/// "__device__ inline float finish(float, float) {...}": the group's one result, before it is rounded to its type, of
/// input 0 and, where the group reads it, input 1. What comes before it is rounded as if it were stored.
std::string function_source(const GroupBody& function);

}  // namespace tokamak::cuda
