// Where rows of a sequence are that kRanks ranks have in a zig-zag: ops/zigzag.h, in rows or in tiles of them, none of
// which crosses a chunk. The text before this says kRanks; 1: a rank has all of it.
#pragma once

#include "backend/cuda/kernels/std.cuh"

namespace tokamak {

struct ZigZag {
  int rows, rank;  // of each rank; which this one is

  __device__ int positions() const { return rows * kRanks; }
  /// In the sequence, of a row of this rank.
  __device__ int position(int row) const {
    if (kRanks == 1) return row;
    int chunk = rows / 2;
    return row < chunk ? rank * chunk + row : (2 * kRanks - 1 - rank) * chunk + row - chunk;
  }
  /// The first row of this rank that has this position or a later one; `rows` where there is none.
  __device__ int first_from(int position) const {
    if (kRanks == 1) return position;
    int chunk = rows / 2, early = rank * chunk, late = (2 * kRanks - 1 - rank) * chunk;
    return position < early + chunk ? max(position - early, 0) : min(chunk + max(position - late, 0), rows);
  }

  struct Place {
    int rank, row;
  };
  __device__ Place place(int position) const {
    if (kRanks == 1) return {0, position};
    int chunk = rows / 2, index = position / chunk, row = position % chunk;
    return index < kRanks ? Place{index, row} : Place{2 * kRanks - 1 - index, chunk + row};
  }
};

}  // namespace tokamak
