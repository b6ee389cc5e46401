#include "run/learning_rate.h"

#include "config/optimizer_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

namespace tokamak {

namespace {

// Of a decay from 1 to 0, at `progress` from 0 to 1.
double left_of(std::string_view decay, double progress) {
  if (decay == "linear") return 1 - progress;
  if (decay == "1-sqrt") return 1 - std::sqrt(progress);
  return (1 + std::cos(std::numbers::pi * progress)) / 2;
}

double inverse_sqrt(int64_t step, const OptimizerConfig& config) {
  double first = double(std::max<int64_t>(config.warmup_steps, 1));
  return std::max(config.lr * std::sqrt(first / std::max(double(step), first)), config.lr * config.min_lr_ratio);
}

}  // namespace

double learning_rate(int64_t step, const OptimizerConfig& config, int64_t run_steps) {
  int64_t warmup = config.warmup_steps, total = schedule_steps(config, run_steps);
  if (step < warmup) return config.lr * double(step + 1) / double(warmup);
  if (config.schedule == "constant") return config.lr;
  if (config.schedule == "inverse_sqrt") return inverse_sqrt(step, config);
  double min = config.lr * config.min_lr_ratio;
  if (step >= total) return min;
  bool stays = config.schedule == "wsd";
  int64_t begin = stays ? std::max(warmup, total - std::lround(config.wsd_decay_share * double(total))) : warmup;
  if (step < begin) return config.lr;
  double progress = double(step - begin) / double(total - begin);
  return min + (config.lr - min) * left_of(stays ? config.wsd_decay : config.schedule, progress);
}

bool has_end(const OptimizerConfig& config) {
  return config.schedule != "constant" && config.schedule != "inverse_sqrt";
}

int64_t schedule_steps(const OptimizerConfig& config, int64_t run_steps) {
  return config.schedule_steps > 0 ? config.schedule_steps : run_steps;
}

}  // namespace tokamak
