#include "backend/cuda/place_source.h"

#include "ops/element_place.h"

#include <fmt/core.h>

namespace tokamak::cuda {

std::string place_in_whole(const std::vector<int64_t>& place, std::string_view type, std::string_view rng,
                           std::string index) {
  for (size_t k = 0; k < place.size() / kPlaceNumbers; ++k) {
    const int64_t* cut = &place[k * kPlaceNumbers];
    index = fmt::format("undo_cut<{}, {}>({}, {}, {}, {}[{}])", type, cut[2] != 0, index, cut[0], cut[1], rng, 2 + k);
  }
  return index;
}

std::string matrix_in_whole(const std::vector<int64_t>& place) {
  return fmt::format(
      "#include \"backend/cuda/kernels/dropout_random.cuh\"\nnamespace tokamak {{\n"
      "__device__ inline uint32_t matrix_in_whole(const int32_t* rng, uint32_t matrix) {{ return {}; }}\n}}\n",
      place_in_whole(place, "uint32_t", "rng", "matrix"));
}

}  // namespace tokamak::cuda
