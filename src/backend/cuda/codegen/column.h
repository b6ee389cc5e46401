// Column groups; see group_source.h.
#pragma once

#include "backend/cuda/codegen/group_source.h"
#include "ops/group_body.h"

namespace tokamak::cuda {

GroupCode generate_column(const GroupBody& body);
int64_t column_workspace_bytes(const GroupBody& body);

}  // namespace tokamak::cuda
