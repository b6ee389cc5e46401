// Device code of multi_cast; tests compile it without a GPU.
#pragma once

#include "graph/type.h"

#include <string>

namespace tokamak::cuda {

/// The function `multi_cast` to a float type.
std::string multi_cast_source(DType to);

}  // namespace tokamak::cuda
