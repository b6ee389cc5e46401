// Where the rows of a sequence are that an axis of N ranks cuts in a zig-zag: of 2N chunks rank r has chunk r, its
// early one, and chunk 2N - 1 - r, its late one (a cut of two mirrored blocks: graph/argument_spec.h). One rank has the
// sequence as it is. Tests: tests/ops/zigzag_test.cpp.
#pragma once

#include <cstdint>

namespace tokamak {

struct ZigZag {
  int64_t rows = 1;  // of a rank; even where there are several
  int64_t ranks = 1, coordinate = 0;

  /// Rows of all ranks.
  int64_t positions() const { return rows * ranks; }
  /// So many rows, from a multiple of it on, have positions that follow each other.
  int64_t chunk() const { return ranks == 1 ? rows : rows / 2; }

  /// In the sequence, of a row of this rank.
  int64_t position(int64_t row) const {
    if (row < chunk()) return coordinate * chunk() + row;
    return (2 * ranks - 1 - coordinate) * chunk() + row - chunk();
  }

  struct Place {
    int64_t rank, row;
  };
  Place place(int64_t position) const {
    if (ranks == 1) return {0, position};
    int64_t index = position / chunk(), in_chunk = position % chunk();
    if (index < ranks) return {index, in_chunk};
    return {2 * ranks - 1 - index, chunk() + in_chunk};
  }
};

}  // namespace tokamak
