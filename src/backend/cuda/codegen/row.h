// Row groups; see group_source.h.
#pragma once

#include "backend/cuda/codegen/group_source.h"
#include "ops/group_body.h"

#include <string>

namespace tokamak::cuda {

GroupCode generate_row(const GroupBody& body, int64_t shared_bytes);
/// The group as "__device__ inline void make_rows(const RowArguments&, T* made)" of a block of `threads`, for kernels
/// that begin with it: result `made` goes there (shared memory; the block waits before it reads), the others to global
/// memory, from block 0. All results are (rows, cols); no sums over the rows. RowArguments has pointers `in` and `out`,
/// by position. What a row is does not depend on how many there are.
std::string generate_row_function(const GroupBody& body, int made, int threads);

int64_t row_workspace_bytes(const GroupBody& body, int64_t shared_bytes);

}  // namespace tokamak::cuda
