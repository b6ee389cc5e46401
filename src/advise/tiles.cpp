#include "advise/tiles.h"

#include "base/divide.h"

namespace tokamak {
namespace {

constexpr int64_t kTileRows = 256, kTileColumns = 128;

}  // namespace

TileUse tile_use(int64_t m, int64_t n, int64_t multiprocessors) {
  TileUse use;
  use.tiles = ceil_div(m, kTileRows) * ceil_div(n, kTileColumns);
  use.waves = ceil_div(use.tiles, multiprocessors);
  use.padding = 1 - double(m) * double(n) / (double(use.tiles) * double(kTileRows * kTileColumns));
  use.idle = double(use.waves * multiprocessors - use.tiles) / double(multiprocessors);
  return use;
}

double TileUse::slowdown(int64_t multiprocessors) const {
  return double(waves * multiprocessors) / double(tiles) / (1 - padding);
}

}  // namespace tokamak
