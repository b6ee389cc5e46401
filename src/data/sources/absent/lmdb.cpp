#include "data/sources/source_format.h"

namespace tokamak {

const TokenReader lmdb_tokens = {.missing = TOKAMAK_PACKAGE};
const DocumentReader lmdb_documents = {.missing = TOKAMAK_PACKAGE};
const DocumentReader lmdb_token_documents = {.missing = TOKAMAK_PACKAGE};

}  // namespace tokamak
