// Row groups; see group_source.h.
#pragma once

#include "backend/cuda/codegen/group_source.h"
#include "ops/group_body.h"

namespace tokamak::cuda {

GroupCode generate_row(const GroupBody& body, int64_t shared_bytes);
int64_t row_workspace_bytes(const GroupBody& body, int64_t shared_bytes);

}  // namespace tokamak::cuda
