#include "checkpoint/known_good.h"

#include "checkpoint/metrics.h"

#include <algorithm>
#include <cmath>

namespace tokamak {
namespace {

constexpr double kNewest = 0.05;  // the share of the newest in a mean: of twenty steps or so
constexpr double kShareAbove = 0.1, kChangesAbove = 4;

}  // namespace

bool LossBand::holds(double loss) const {
  if (!std::isfinite(loss)) return false;
  return losses == 0 || loss <= lowest + std::max(kShareAbove * std::abs(lowest), kChangesAbove * change);
}

void LossBand::add(double loss) {
  if (losses == 0) mean = lowest = last = loss;
  mean += kNewest * (loss - mean);
  change += kNewest * (std::abs(loss - last) - change);
  lowest = std::min(lowest, mean);
  last = loss;
  ++losses;
}

bool KnownGood::add(const StepMetrics& metrics) {
  if (!metrics.applied || !state_.band.holds(metrics.loss)) return false;
  state_.band.add(metrics.loss);
  bool is_new = saved_ > 0 && metrics.step == saved_ + 1 && state_.step != saved_;
  if (is_new) state_.step = saved_;
  return is_new;
}

}  // namespace tokamak
