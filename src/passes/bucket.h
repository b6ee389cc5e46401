// bucket: collectives of one kind (op, axis, reduction, type, phase) become one of several tensors, up to
// mesh.bucket_mib, so that a latency is paid once for many of them. Two ways:
//
//   What is read late, as gradients are, waits for the next of its kind and goes with the last one:
//
//     %4 = all_reduce(%3)
//     ... = f(%2)             ->       ... = f(%2)
//     %6 = all_reduce(%5)              %4, %6 = all_reduce(%3, %5)
//
//   What can be had early, parameters that ZeRO cuts, goes with the first one, one bucket ahead of what reads it:
//
//     %3 = all_gather(p0)              %3 = all_gather(p0)
//     ... = f(%3)             ->       %4, %5 = all_gather(p1, p2)
//     %4 = all_gather(p1)              ... = f(%3)
//     ... = g(%4)                      ... = g(%4)
//     %5 = all_gather(p2)
//
// What is larger than a bucket is a collective of its own, before which gradients do not wait for those behind it; and
// parameters among it go one bucket ahead as others do.
// With a memory budget, parameters are gathered ahead at most a sixteenth of it at a time, which nearby_budget rounds.
// This pass decides the order of collectives on an axis, the same for all ranks. Exact. Tests:
// tests/passes/bucket_test.cpp, bucket_random_test.cpp.
#pragma once

#include "passes/pass.h"

namespace tokamak {

struct BucketBytes {
  int64_t most = 0;      // of a bucket
  int64_t gathered = 0;  // of one of parameters
  int64_t ahead = 0;     // of one parameter; a larger one is gathered where it is read
};

/// Returns whether the graph changed.
bool bucket_graph(Graph& graph, const BucketBytes& bytes);

/// To the nearest half power of two: budgets that are close to each other gather ahead alike, so that what a few blocks
/// take within one (advise/block_costs.h) is true within others.
double nearby_budget(double gib);

/// The same, with what mesh.bucket_mib and the memory budget say.
bool bucket(Graph& graph, const PassContext& context);

}  // namespace tokamak
