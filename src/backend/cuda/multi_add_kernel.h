// Device code of multi_add; tests compile it without a GPU.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak::cuda {

/// The function `multi_add` of sums of so many terms.
std::string multi_add_source(int64_t terms);

}  // namespace tokamak::cuda
