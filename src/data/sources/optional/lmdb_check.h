// Is a file an LMDB database that the library can go through? The library trusts every number in it: a damaged one
// makes it read outside of the file, abort, or go round for ever. Tests: tests/data/sources/optional/lmdb_test.cpp.
#pragma once

#include <cstdint>

#include "base/file.h"

namespace tokamak {

/// Goes once through all pages with keys (not the values), each of which may be used once. Gives the number of entries.
/// UserErrors: another file, cut short, damaged, several values for a key, named databases.
int64_t check_lmdb(const MappedFile& file);

}  // namespace tokamak
