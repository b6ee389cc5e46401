#include "data/sources/compression.h"

namespace tokamak {

const Decompressor gzip_decompressor = {.missing = TOKAMAK_PACKAGE};

}  // namespace tokamak
