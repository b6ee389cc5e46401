// Sums over all rows out of the partial sums of blocks, which lie in the workspace as
// partial[(block * kSums + s) * kCols + column]; the text defines kBlocks and kSums.
#pragma once

#include "backend/cuda/codegen/group_source.h"
#include "backend/cuda/codegen/text.h"
#include "ops/group_body.h"

namespace tokamak::cuda {

/// Bytes of those partial sums.
int64_t partial_bytes(const GroupBody& body, int64_t blocks);

/// Appends the function `combine`, its launch and the workspace. `sums`: the reductions.
void add_combine(GroupCode& code, const GroupBody& body, const std::vector<int>& sums, int64_t blocks);

/// At the end of a row kernel: the sums total<v>[kVectors][kVector] of its threads, added over the block's teams.
void write_partial(Text& text, const std::vector<int>& sums, int teams);

/// "Sum" or "Max".
const char* combine_name(const GroupValue& reduction);

/// Results that are the reduction's.
std::vector<int> results_of(const GroupBody& body, int value);

}  // namespace tokamak::cuda
