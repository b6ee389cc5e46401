// Places of a rank's elements in the whole (ops/element_place.h), as text of device code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak::cuda {

/// The place in the whole of the part's element `index`, an expression of the integer type `type`, where the rng that
/// says which part it is is called `rng`.
std::string place_in_whole(const std::vector<int64_t>& place, std::string_view type, std::string_view rng,
                           std::string index);

/// A function for kernels of attention, of the number of a head's matrix in the part.
std::string matrix_in_whole(const std::vector<int64_t>& place);

}  // namespace tokamak::cuda
