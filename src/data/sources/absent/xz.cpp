#include "data/sources/compression.h"

namespace tokamak {

const Decompressor xz_decompressor = {.missing = TOKAMAK_PACKAGE};

}  // namespace tokamak
