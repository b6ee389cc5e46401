#include "base/parallel.h"
#include "base/random.h"
#include "model/initial_elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace tokamak {
namespace {

// Box-Muller on two words a pair; the stream 2^32 + index keeps clear of dropout's.
std::array<float, 2> draw_pair(const ParameterInfo& info, int64_t index, int64_t seed, int64_t pair) {
  auto words = philox4x32(uint64_t(seed), uint64_t(pair), (uint64_t(1) << 32) + uint64_t(index));
  double radius = std::sqrt(-2 * std::log(1.0 - double(uniform_float(words[0]))));
  double angle = 2 * std::numbers::pi * double(uniform_float(words[1]));
  return {float(info.init_std * radius * std::cos(angle)), float(info.init_std * radius * std::sin(angle))};
}

}  // namespace

void init_elements(const ParameterInfo& info, int64_t index, int64_t seed, int64_t begin, std::span<float> values) {
  if (info.init_std == 0) {
    std::fill(values.begin(), values.end(), float(info.init_value));
    return;
  }
  int64_t end = begin + int64_t(values.size()), first = begin / 2;
  parallel_for((end + 1) / 2 - first, 1 << 14, [&](int64_t from, int64_t to, int) {
    for (int64_t pair = first + from; pair < first + to; ++pair) {
      std::array<float, 2> drawn = draw_pair(info, index, seed, pair);
      for (int64_t i : {0, 1})
        if (int64_t at = 2 * pair + i; at >= begin && at < end) values[size_t(at - begin)] = drawn[size_t(i)];
    }
  });
}

void init_parameter(const ParameterInfo& info, int64_t index, int64_t seed, std::span<float> values) {
  init_elements(info, index, seed, 0, values);
}

std::vector<float> init_parameter(const ParameterInfo& info, int64_t index, int64_t seed) {
  std::vector<float> values(size_t(num_elements(info.shape)));
  init_parameter(info, index, seed, values);
  return values;
}

}  // namespace tokamak
