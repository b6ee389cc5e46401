// Adds up the rows of dy that have the same id. The positions come sorted by id (kernels/radix_sort.cu) and are cut
// into windows: sum_rows adds the rows of a window in order; runs of one id that go on over the window's end are left
// as partial sums, which combine_runs adds in order. Nothing depends on which block comes first. The text before this
// says `In`, `Out`, kCount (of positions), kInvalid (the key of rows that are left out), kCols, kVector (columns of a
// thread), kThreads, and kAdd (whether the output holds something to add to).
#include "backend/cuda/kernels/vectors.cuh"

using namespace tokamak;

constexpr int kWindow = 64;
constexpr int kAhead = 8;  // rows under way at a time
constexpr int kWindows = (kCount + kWindow - 1) / kWindow;
constexpr int kSegments = 8;  // of a run's partial sums, added at the same time

struct Keyed {
  int32_t key;
  int32_t position;
};

struct Sum {
  float data[kVector];
};

__device__ inline void add_to_row(Out* out, int32_t key, int column, const Sum& sum) {
  if (key >= kInvalid) return;
  Out* at = out + int64_t(key) * kCols + column;
  Sum total = sum;
  if (kAdd) {
    Sum base;
    load_floats<kVector>(at, base.data);
#pragma unroll
    for (int c = 0; c < kVector; ++c) total.data[c] += base.data[c];
  }
  store_floats<kVector>(at, total.data);
}

// partial: (kWindows, 2, kCols), first of the run that came in from the window before, then of the one that goes on.
extern "C" __global__ void __launch_bounds__(kThreads)
    sum_rows(const In* __restrict__ dy, const Keyed* __restrict__ sorted, Out* out, float* __restrict__ partial) {
  tokamak::begin_kernel();
  __shared__ Keyed window[kWindow + 1];
  int first = int(blockIdx.x) * kWindow, count = min(kWindow, kCount - first);
  for (int i = int(threadIdx.x); i <= count; i += kThreads)
    window[i] = first + i < kCount ? sorted[first + i] : Keyed{-1, 0};
  __syncthreads();
  int column = (int(blockIdx.y) * kThreads + int(threadIdx.x)) * kVector;
  if (column >= kCols) return;
  bool came_in = first > 0 && sorted[first - 1].key == window[0].key;
  Sum sum = {};
  for (int i0 = 0; i0 < count; i0 += kAhead) {
    Sum rows[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (i0 + k < count) load_floats<kVector>(dy + int64_t(window[i0 + k].position) * kCols + column, rows[k].data);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      int i = i0 + k;
      if (i >= count) continue;
#pragma unroll
      for (int c = 0; c < kVector; ++c) sum.data[c] += rows[k].data[c];
      bool goes_on = window[i + 1].key == window[i].key;
      if (goes_on && i + 1 < count) continue;
      float* place = partial + int64_t(blockIdx.x) * 2 * kCols + column;
      if (came_in)
        store_floats<kVector>(place, sum.data);
      else if (goes_on)
        store_floats<kVector>(place + kCols, sum.data);
      else
        add_to_row(out, window[i].key, column, sum);
      came_in = false;
      sum = Sum{};
    }
  }
}

// The last window whose first position has the key.
__device__ inline int last_window_of(const Keyed* sorted, int window, int32_t key) {
  int low = window, high = kWindows - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (sorted[middle * kWindow].key <= key)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// Block x: the run that begins in window x and goes on, if there is one. Threads (32, kSegments).
extern "C" __global__ void __launch_bounds__(32 * kSegments)
    combine_runs(const Keyed* __restrict__ sorted, const float* __restrict__ partial, Out* out) {
  tokamak::begin_kernel();
  __shared__ Sum sums[kSegments][32];
  int window = int(blockIdx.x), next = (window + 1) * kWindow;
  if (next >= kCount) return;
  int32_t key = sorted[next].key;
  if (sorted[next - 1].key != key || key >= kInvalid) return;
  int first = window * kWindow;
  if (first > 0 && sorted[first].key == key && sorted[first - 1].key == key) return;  // it began before
  int last = last_window_of(sorted, window + 1, key), pieces = last - window;
  int column = (int(blockIdx.y) * 32 + int(threadIdx.x)) * kVector;
  int segment = int(threadIdx.y), each = (pieces + kSegments - 1) / kSegments;
  Sum sum = {};
  if (column < kCols) {
    int end = min(window + 1 + (segment + 1) * each, last + 1);
#pragma unroll 4
    for (int w = window + 1 + segment * each; w < end; ++w) {
      Sum piece;
      load_floats<kVector>(partial + int64_t(w) * 2 * kCols + column, piece.data);
#pragma unroll
      for (int c = 0; c < kVector; ++c) sum.data[c] += piece.data[c];
    }
  }
  sums[segment][threadIdx.x] = sum;
  __syncthreads();
  if (segment > 0 || column >= kCols) return;
  load_floats<kVector>(partial + (int64_t(window) * 2 + 1) * kCols + column, sum.data);
  for (int s = 0; s < kSegments; ++s)
#pragma unroll
    for (int c = 0; c < kVector; ++c) sum.data[c] += sums[s][threadIdx.x].data[c];
  add_to_row(out, key, column, sum);
}
