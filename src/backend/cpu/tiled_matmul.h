// Products of bf16 matrices by tiles (backend/cpu/bf16_tiles.h): both operands are packed, piece by piece, and
// multiplied in blocks that stay in a core's cache. Sums are in f32, one element of the inner dimension behind the
// other; no bit depends on the number of threads. Tests: tests/backend/cpu/tiled_matmul_test.cpp.
#pragma once

#include "backend/cpu/bf16_tiles.h"
#include "backend/cpu/matmul.h"

namespace tokamak::cpu {

class TiledMatmul {
 public:
  /// Whether it is for such a product: operands of bf16, and large enough for packing to pay.
  static bool is_for(const MatmulShape& shape, const MatmulOptions& options);

  /// `shape` is filled, and one that is_for() accepts.
  TiledMatmul(const TileUnits& units, const MatmulShape& shape, DType output);

  /// Bytes of workspace at `threads` threads.
  size_t workspace_bytes(int threads) const;

  void run(const void* a, const void* b, void* c, void* workspace) const;

 private:
  struct Pieces;
  struct Task;
  void run_pieces(const Pieces& pieces, void* c) const;
  void run_block(const Pieces& pieces, const Task& task, float* sums) const;
  void write(const Task& task, const float* sums, void* c) const;
  int64_t sums_of_block() const;  // floats

  const TileUnits* units_;
  MatmulShape s_;
  DType output_;
};

}  // namespace tokamak::cpu
