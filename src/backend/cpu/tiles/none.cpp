// For processors that have no such units: nothing here is ever called but the first three.
#include "backend/cpu/bf16_tiles.h"

#include "base/error.h"

namespace tokamak::cpu {
namespace {

void refuse() { TOKAMAK_CHECK(false, "tiles of bf16 on a processor without them"); }

}  // namespace

const TileUnits* amx_units() { return nullptr; }
const TileUnits* avx512_bf16_units() { return nullptr; }
const TileUnits* tile_units() { return nullptr; }

void pair_rows(const uint16_t*, int64_t, uint16_t*) { refuse(); }
void transpose_words(const uint32_t*, int64_t, uint32_t*) { refuse(); }
void multiply_rows(const uint16_t*, const uint16_t*, int64_t, int64_t, float*) { refuse(); }
void round_rows(const float*, int64_t, int64_t, float, uint16_t*, int64_t) { refuse(); }
void round_columns(const float*, int64_t, int64_t, const float*, uint16_t*, int64_t) { refuse(); }
void add_softmax(const TileSoftmax&) { refuse(); }
void score_grad(const TileScoreGrad&) { refuse(); }

}  // namespace tokamak::cpu
