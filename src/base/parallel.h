// Parallel loops over all cores. Work is split statically, so which thread does what (and with it every
// reduction order) depends only on the sizes and on num_threads(). One implementation is built: parallel/openmp.cpp
// (shares its threads with oneDNN) or parallel/threads.cpp (which ThreadSanitizer can see through).
// Tests: tests/base/parallel_test.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

namespace tokamak {

/// Threads that parallel loops use; at least 1.
int num_threads();

/// Sets the thread count for loops that start afterwards; n < 1 means all cores that the process may use, or with
/// OpenMP as many as OMP_NUM_THREADS says.
void set_num_threads(int n);

/// Calls body(begin, end, thread) on contiguous, disjoint pieces of [0, count), at most one per thread, every piece
/// but the last a multiple of `grain` long. Nested calls run whole, on the calling thread, as thread 0. The body must
/// not throw.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body);

/// Calls body() so that a library with threads of its own (OpenMP's) uses the calling thread only.
void on_this_thread_only(const std::function<void()>& body);

/// How parallel_for splits [0, count): piece i of `pieces`, in whole grains, as even as they come.
struct Split {
  int64_t count, grain, pieces;
  Split(int64_t count, int64_t grain, int threads)
      : count(std::max<int64_t>(count, 0)), grain(std::max<int64_t>(grain, 1)),
        pieces(std::min<int64_t>(std::max(threads, 1), grains())) {}
  int64_t grains() const { return (count + grain - 1) / grain; }
  int64_t begin(int64_t i) const { return std::min(count, grains() * i / pieces * grain); }
  int64_t end(int64_t i) const { return begin(i + 1); }
};

}  // namespace tokamak
