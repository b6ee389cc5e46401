// Sums of gradients without the rows of zeros that pad_shards adds to their parameters. Tests:
// tests/passes/trim_sums_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

/// The graph with sums of gradients that have no rows of zeros, where ZeRO does not cut them: products add onto them,
/// and the rows come where the sums are read. For `shard`.
Graph with_sums_trimmed(const Graph& graph, const PassContext& context);

}  // namespace tokamak
