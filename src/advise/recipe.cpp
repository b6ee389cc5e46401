#include "advise/recipe.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tokamak {
namespace {

struct KnownRate {
  double parameters, lr;
};

constexpr KnownRate kGpt3[] = {{125e6, 6e-4},   {350e6, 3e-4},   {760e6, 2.5e-4}, {1.3e9, 2e-4},
                               {2.7e9, 1.6e-4}, {6.7e9, 1.2e-4}, {13e9, 1e-4},    {175e9, 0.6e-4}};

double two_digits(double x) {
  double scale = std::pow(10.0, 1 - std::floor(std::log10(x)));
  return std::round(x * scale) / scale;
}

double rate_of(double parameters) {
  const KnownRate* above = std::ranges::find_if(kGpt3, [&](const KnownRate& k) { return k.parameters >= parameters; });
  if (above == std::begin(kGpt3)) return above->lr;
  if (above == std::end(kGpt3)) return std::prev(above)->lr;
  const KnownRate& below = *std::prev(above);
  double share = std::log(parameters / below.parameters) / std::log(above->parameters / below.parameters);
  return two_digits(below.lr * std::pow(above->lr / below.lr, share));
}

}  // namespace

Recipe recipe_of(double parameters, double step_tokens, double steps) {
  constexpr double kWarmupTokens = 375e6, kMostOfSteps = 0.05;
  double warmup = std::min(kWarmupTokens / step_tokens, kMostOfSteps * steps);
  return {rate_of(parameters), std::max<int64_t>(std::llround(warmup), 1)};
}

}  // namespace tokamak
