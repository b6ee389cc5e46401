// A square tile of a matrix in shared memory, written by rows and read by columns, both 16 bytes at a time: 128 bytes
// on a side. Each row's pieces of 16 bytes are permuted, so that neither way two threads meet in a bank.
#pragma once

#include "backend/cuda/kernels/std.cuh"

namespace tokamak {

/// Elements of 1, 2 or 4 bytes.
template <typename Unit>
struct TurnedTile {
  static constexpr int kPiece = 16 / int(sizeof(Unit));  // elements of 16 bytes
  static constexpr int kSide = 8 * kPiece;               // elements
  static constexpr int kWord = 4 / int(sizeof(Unit));    // elements of a word

  uint4 pieces[kSide * 8];

  /// Elements [kPiece p, kPiece (p + 1)) of a row.
  __device__ uint4& piece(int row, int p) { return pieces[row * 8 + (p ^ (row / kPiece))]; }

  /// Columns [kWord w, kWord (w + 1)), rows [kPiece p, kPiece (p + 1)): of each column 16 bytes. A warp's threads have
  /// p from 0 to 7 and four w in turn.
  __device__ void turned(int w, int p, uint4 (&columns)[kWord]) const {
    uint32_t rows[kPiece];
#pragma unroll
    for (int r = 0; r < kPiece; ++r) rows[r] = word(kPiece * p + r, w);
    uint32_t out[kWord][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) turn(rows + i * kWord, out, i);
#pragma unroll
    for (int c = 0; c < kWord; ++c) columns[c] = {out[c][0], out[c][1], out[c][2], out[c][3]};
  }

 private:
  __device__ uint32_t word(int row, int w) const {
    return reinterpret_cast<const uint32_t*>(pieces)[row * 32 + (w ^ (row / kPiece * 4))];
  }

  // Word i of each column, from a square of kWord words.
  static __device__ void turn(const uint32_t* rows, uint32_t (&out)[kWord][4], int i) {
    if constexpr (kWord == 4) {
      uint32_t low01 = __byte_perm(rows[0], rows[1], 0x5140), low23 = __byte_perm(rows[2], rows[3], 0x5140);
      uint32_t high01 = __byte_perm(rows[0], rows[1], 0x7362), high23 = __byte_perm(rows[2], rows[3], 0x7362);
      out[0][i] = __byte_perm(low01, low23, 0x5410);
      out[1][i] = __byte_perm(low01, low23, 0x7632);
      out[2][i] = __byte_perm(high01, high23, 0x5410);
      out[3][i] = __byte_perm(high01, high23, 0x7632);
    } else if constexpr (kWord == 2) {
      out[0][i] = __byte_perm(rows[0], rows[1], 0x5410);
      out[1][i] = __byte_perm(rows[0], rows[1], 0x7632);
    } else {
      out[0][i] = rows[0];
    }
  }
};

}  // namespace tokamak
