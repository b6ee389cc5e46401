#include "base/parallel.h"
#include "base/random.h"
#include "model/model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tokamak {
namespace {

// Box-Muller on two words a pair; the stream 2^32 + index keeps clear of dropout's.
void draw_pair(const ParameterInfo& info, int64_t index, int64_t seed, int64_t pair, std::span<float> values) {
  auto words = philox4x32(uint64_t(seed), uint64_t(pair), (uint64_t(1) << 32) + uint64_t(index));
  double radius = std::sqrt(-2 * std::log(1.0 - double(uniform_float(words[0]))));
  double angle = 2 * std::numbers::pi * double(uniform_float(words[1]));
  auto i = size_t(2 * pair);
  values[i] = float(info.init_std * radius * std::cos(angle));
  if (i + 1 < values.size()) values[i + 1] = float(info.init_std * radius * std::sin(angle));
}

}  // namespace

void init_parameter(const ParameterInfo& info, int64_t index, int64_t seed, std::span<float> values) {
  if (info.init_std == 0) {
    std::fill(values.begin(), values.end(), float(info.init_value));
    return;
  }
  auto pairs = int64_t(values.size() + 1) / 2;
  parallel_for(pairs, 1 << 14, [&](int64_t begin, int64_t end, int) {
    for (int64_t pair = begin; pair < end; ++pair) draw_pair(info, index, seed, pair, values);
  });
}

std::vector<float> init_parameter(const ParameterInfo& info, int64_t index, int64_t seed) {
  std::vector<float> values(size_t(num_elements(info.shape)));
  init_parameter(info, index, seed, values);
  return values;
}

}  // namespace tokamak
