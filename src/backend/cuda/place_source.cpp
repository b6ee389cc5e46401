#include "backend/cuda/place_source.h"

#include <fmt/core.h>

namespace tokamak::cuda {

std::string place_in_whole(const std::vector<int64_t>& place, std::string_view type, std::string_view rng,
                           std::string index) {
  for (size_t k = 0; k < place.size() / 2; ++k)
    index = fmt::format("undo_cut<{}>({}, {}, {}, {}[{}])", type, index, place[2 * k], place[2 * k + 1], rng, 2 + k);
  return index;
}

std::string matrix_in_whole(const std::vector<int64_t>& place) {
  return fmt::format(
      "#include \"backend/cuda/kernels/dropout_random.cuh\"\nnamespace tokamak {{\n"
      "__device__ inline uint32_t matrix_in_whole(const int32_t* rng, uint32_t matrix) {{ return {}; }}\n}}\n",
      place_in_whole(place, "uint32_t", "rng", "matrix"));
}

}  // namespace tokamak::cuda
