// What is known of a dataset of an HDF5 file once it is open. Goes between processes as it lies in memory.
#pragma once

#include <cstdint>

#include "data/sources/token_type.h"

namespace tokamak {

struct Hdf5Facts {
  enum class Kind { kIntegers, kTexts, kFloats, kOther };

  Kind kind = Kind::kOther;
  TokenType type = {};  // of integers
  int64_t elements = 0;
  int64_t offset = -1;  // of integers that lie in the file as they are, one after the other: their first byte; else -1
  int64_t at_once = 1;  // texts to read in one call
};

}  // namespace tokamak
