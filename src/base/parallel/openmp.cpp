// parallel.h on OpenMP: the thread team is the one that oneDNN uses too, so the two never compete for cores.
#include "base/parallel.h"

#include <omp.h>

#include <atomic>
#include <cstdlib>

#include "base/system.h"

namespace tokamak {
namespace {

// OpenMP keeps its own count per calling thread; this one holds for all of them. 0: OpenMP's own start value.
std::atomic<int>& wanted_threads() {
  static std::atomic<int> wanted{0};
  return wanted;
}

/// OMP_NUM_THREADS, or else all cores that the process may use.
int start_threads() {
  static const int threads =
      std::getenv("OMP_NUM_THREADS") ? omp_get_max_threads() : usable_cpus(omp_get_max_threads());
  return threads;
}

}  // namespace

int num_threads() {
  int wanted = wanted_threads().load(std::memory_order_relaxed);
  return wanted > 0 ? wanted : omp_get_max_threads();
}

void set_num_threads(int n) {
  int most = start_threads();  // before the first change
  wanted_threads() = n < 1 ? most : n;
  omp_set_num_threads(num_threads());  // for libraries called from this thread
}

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t, int)>& body) {
  if (count <= 0) return;
  if (omp_in_parallel()) return body(0, count, 0);
  Split split(count, grain, num_threads());
  if (split.pieces == 1) return body(0, count, 0);
  int team = int(split.pieces);
#pragma omp parallel num_threads(team)
  // The runtime may give fewer threads than asked for; the pieces stay the same.
  for (int i = omp_get_thread_num(); i < team; i += omp_get_num_threads()) body(split.begin(i), split.end(i), i);
}

void on_this_thread_only(const std::function<void()>& body) {
  int before = omp_get_max_threads();
  omp_set_num_threads(1);
  body();
  omp_set_num_threads(before);
}

}  // namespace tokamak
