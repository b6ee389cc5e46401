// Rows of a table by index. The text before this says `Unit` (2 to 16 bytes), `Index`, kUnits (of all
// rows together), kRowUnits (of one row), kRows (of the table) and nan_unit().
#include "backend/cuda/kernels/std.cuh"

constexpr int kUnitsPerThread = 4;

// A row with an id that is not in the table becomes NaN: clamping would hide the error, and the loss shows NaN.
extern "C" __global__ void __launch_bounds__(256)
    embedding(const Unit* __restrict__ table, const int32_t* __restrict__ ids, Unit* __restrict__ out) {
  tokamak::begin_kernel();
  Index first = Index(blockIdx.x) * (256 * kUnitsPerThread) + threadIdx.x;
  Unit units[kUnitsPerThread];
#pragma unroll
  for (int k = 0; k < kUnitsPerThread; ++k) {
    Index i = first + Index(k) * 256;
    if (i >= kUnits) continue;
    int32_t id = ids[i / kRowUnits];
    units[k] = nan_unit();
    if (id >= 0 && id < kRows) units[k] = table[int64_t(id) * kRowUnits + i % kRowUnits];
  }
#pragma unroll
  for (int k = 0; k < kUnitsPerThread; ++k) {
    Index i = first + Index(k) * 256;
    if (i < kUnits) out[i] = units[k];
  }
}
