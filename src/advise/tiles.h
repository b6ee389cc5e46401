// A matrix product on a GPU: its result is cut into tiles, which the multiprocessors take in waves.
// Tests: tests/advise/tiles_test.cpp.
#pragma once

#include <cstdint>

namespace tokamak {

struct TileUse {
  int64_t tiles = 0;
  int64_t waves = 0;
  double padding = 0;  // share of the tiles' area that lies outside of the result
  double idle = 0;     // share of the last wave's multiprocessors that have no tile

  /// How many times longer than if nothing were idle or outside.
  double slowdown(int64_t multiprocessors) const;
};

/// For a result (m, n). Tiles are 256 x 128, of which libraries' fastest kernels for large products are.
TileUse tile_use(int64_t m, int64_t n, int64_t multiprocessors);

}  // namespace tokamak
