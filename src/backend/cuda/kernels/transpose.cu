// Swaps two dims through shared memory, so that reads and writes both go along lines of memory. The text before this
// says `Unit` (1, 2 or 4 bytes), `Index`, kLines and kElements (of the output: kElements of a line lie side by side),
// their strides in the input (kLines' is 1) and in the output, kTilesDown and kTilesAcross, and place_of(batch).
#include "backend/cuda/kernels/std.cuh"

constexpr int kTile = 32;
constexpr int kRows = 8;  // of threads

extern "C" __global__ void __launch_bounds__(kTile* kRows)
    transpose(const Unit* __restrict__ from, Unit* __restrict__ to) {
  tokamak::begin_kernel();
  __shared__ Unit tile[kTile][kTile + 1];
  Index at = blockIdx.x;
  Index element0 = at % kTilesAcross * kTile;
  at /= kTilesAcross;
  Index line0 = at % kTilesDown * kTile;
  Place place = place_of(at / kTilesDown);
  Index line = line0 + threadIdx.x;
#pragma unroll
  for (int r = 0; r < kTile; r += kRows) {
    Index element = element0 + threadIdx.y + r;
    if (line < kLines && element < kElements)
      tile[threadIdx.y + r][threadIdx.x] = from[place.from + element * kFromStride + line];
  }
  __syncthreads();
  Index element = element0 + threadIdx.x;
#pragma unroll
  for (int r = 0; r < kTile; r += kRows) {
    line = line0 + threadIdx.y + r;
    if (line < kLines && element < kElements)
      to[place.to + line * kToStride + element] = tile[threadIdx.x][threadIdx.y + r];
  }
}
