// As transpose.cu, where all sizes and strides are multiples of 16 bytes: those are what a thread reads and writes at a
// time, eight neighbours 128 bytes of a line.
#include "backend/cuda/kernels/turned_tile.cuh"

using Tile = tokamak::TurnedTile<Unit>;
constexpr int kThreads = 256;
constexpr int kLoads = Tile::kSide * 8 / kThreads;  // of a thread

extern "C" __global__ void __launch_bounds__(kThreads)
    transpose_wide(const Unit* __restrict__ from, Unit* __restrict__ to) {
  tokamak::begin_kernel();
  __shared__ Tile tile;
  Index at = blockIdx.x;
  Index element0 = at % kTilesAcross * Tile::kSide;
  at /= kTilesAcross;
  Index line0 = at % kTilesDown * Tile::kSide;
  Place place = place_of(at / kTilesDown);
  int piece = threadIdx.x % 8, row = threadIdx.x / 8;
  Index line = line0 + piece * Tile::kPiece;
  uint4 loaded[kLoads];
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    Index element = element0 + row + k * (kThreads / 8);
    if (line < kLines && element < kElements)
      loaded[k] = *reinterpret_cast<const uint4*>(from + place.from + element * kFromStride + line);
  }
#pragma unroll
  for (int k = 0; k < kLoads; ++k) tile.piece(row + k * (kThreads / 8), piece) = loaded[k];
  __syncthreads();
  Index element = element0 + piece * Tile::kPiece;
  uint4 columns[Tile::kWord];
  tile.turned(row, piece, columns);
#pragma unroll
  for (int c = 0; c < Tile::kWord; ++c) {
    line = line0 + row * Tile::kWord + c;
    if (line < kLines && element < kElements)
      *reinterpret_cast<uint4*>(to + place.to + line * kToStride + element) = columns[c];
  }
}
