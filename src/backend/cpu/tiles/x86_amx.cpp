// Compiled for CPUs with AMX, whatever the program is built for; so nothing here is inline or comes from other headers.
#include "backend/cpu/bf16_tiles.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tokamak::cpu {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

void enter() {
  static const TileConfig config;
  _tile_loadconfig(&config);
}
void leave() { _tile_release(); }

constexpr int kRowBytes = 64;

void multiply(const TileProduct& p) {
  for (int64_t n = 0; n < p.n / kTileSide; n += 2)
    for (int64_t m = 0; m < p.m / kTileSide; m += 2) {
      float* c = p.c.base + m * p.c.below + n * p.c.beside;
      float *below = c + p.c.below, *beside = c + p.c.beside, *corner = below + p.c.beside;
      if (p.accumulate) {
        _tile_loadd(0, c, kRowBytes);
        _tile_loadd(1, beside, kRowBytes);
        _tile_loadd(2, below, kRowBytes);
        _tile_loadd(3, corner, kRowBytes);
      } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      }
      const uint16_t *a = p.a.base + m * p.a.below, *b = p.b.base + n * p.b.beside;
      for (int64_t k = 0; k < p.k; k += kTileDepth, a += p.a.beside, b += p.b.below) {
        _tile_loadd(4, a, kRowBytes);
        _tile_loadd(6, b, kRowBytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + p.b.beside, kRowBytes);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + p.a.below, kRowBytes);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      _tile_stored(0, c, kRowBytes);
      _tile_stored(1, beside, kRowBytes);
      _tile_stored(2, below, kRowBytes);
      _tile_stored(3, corner, kRowBytes);
    }
}

// Linux lends the tiles' registers to programs that ask for them.
bool is_lent() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kBf16) == 0 || (d & kTile) == 0) return false;
  return avx512_bf16_units() != nullptr && is_lent();
}

}  // namespace

const TileUnits* amx_units() {
  static const TileUnits units{"amx", enter, multiply, leave};
  static const bool has = has_amx();
  return has ? &units : nullptr;
}

}  // namespace tokamak::cpu
