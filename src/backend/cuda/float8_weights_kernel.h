// Device code of float8_weights; tests compile it without a GPU.
#pragma once

#include <string>

namespace tokamak::cuda {

/// The functions `largest_of_weights`, `cast_weights` and `longest_columns`; compute capability 8.9 and above.
std::string float8_weights_source();

}  // namespace tokamak::cuda
