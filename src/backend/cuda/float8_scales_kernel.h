// Device code of float8_scales; tests compile it without a GPU.
#pragma once

#include <string>

namespace tokamak::cuda {

/// The function `float8_scales`.
std::string float8_scales_source();

}  // namespace tokamak::cuda
