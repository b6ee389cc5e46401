#include "data/sources/source_format.h"

namespace tokamak {

const DocumentReader csv_documents = {.missing = TOKAMAK_PACKAGE};

}  // namespace tokamak
