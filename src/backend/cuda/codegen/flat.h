// Flat groups; see group_source.h.
#pragma once

#include "backend/cuda/codegen/group_source.h"
#include "ops/group_body.h"

namespace tokamak::cuda {

GroupCode generate_flat(const GroupBody& body);

}  // namespace tokamak::cuda
