#include "data/sources/compression.h"

namespace tokamak {

const Decompressor bzip2_decompressor = {.missing = TOKAMAK_PACKAGE};

}  // namespace tokamak
