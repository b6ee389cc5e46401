#include "run/learning_rate.h"

#include "config/optimizer_config.h"

#include <cmath>
#include <numbers>

namespace tokamak {

double learning_rate(int64_t step, const OptimizerConfig& config, int64_t total_steps) {
  int64_t warmup = config.warmup_steps;
  if (step < warmup) return config.lr * double(step + 1) / double(warmup);
  double min = config.lr * config.min_lr_ratio;
  if (step >= total_steps) return min;
  double progress = double(step - warmup) / double(total_steps - warmup);
  return min + (config.lr - min) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

}  // namespace tokamak
