// Copies units of 1 to 16 bytes from one strided layout to another. The text before this says `Unit`, `Index` (an
// unsigned integer that holds every offset), kUnits and place_of(unit).
#include "backend/cuda/kernels/std.cuh"

constexpr int kUnitsPerThread = 4;  // loads under way at a time

extern "C" __global__ void __launch_bounds__(256) strided_copy(const Unit* __restrict__ from, Unit* __restrict__ to) {
  tokamak::begin_kernel();
  Index first = Index(blockIdx.x) * (256 * kUnitsPerThread) + threadIdx.x;
  Unit units[kUnitsPerThread];
#pragma unroll
  for (int k = 0; k < kUnitsPerThread; ++k) {
    Index i = first + Index(k) * 256;
    if (i >= kUnits) continue;
    Place place = place_of(i);
    units[k] = Unit{};  // what lies outside of the input is zero
    if (place.inside) units[k] = from[place.from];
  }
#pragma unroll
  for (int k = 0; k < kUnitsPerThread; ++k) {
    Index i = first + Index(k) * 256;
    if (i < kUnits) to[place_of(i).to] = units[k];
  }
}
