#include "data/sources/source_format.h"

namespace tokamak {

const TokenReader hdf5_tokens = {.missing = TOKAMAK_PACKAGE};
const DocumentReader hdf5_documents = {.missing = TOKAMAK_PACKAGE};

}  // namespace tokamak
