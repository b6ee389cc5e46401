#include "data/sources/compression.h"

namespace tokamak {

const Decompressor zstd_decompressor = {.missing = TOKAMAK_PACKAGE};

}  // namespace tokamak
