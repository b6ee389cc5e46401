// Parallel loops over all cores. Work is split statically, so which thread does what (and with it every
// reduction order) depends only on the sizes and on num_threads().
#pragma once

#include <cstdint>
#include <functional>

namespace tokamak {

/// Threads that parallel loops use; at least 1.
int num_threads();

/// Sets the thread count for loops that start afterwards; n < 1 means all cores that the process may use.
void set_num_threads(int n);

/// Calls body(begin, end, thread) on contiguous, disjoint pieces of [0, count), at most one per thread, every piece
/// but the last a multiple of `grain` long. Nested calls run on the calling thread. The body must not throw.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body);

}  // namespace tokamak
