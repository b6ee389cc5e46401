// The optimizer and its schedule.
#pragma once

#include <cstdint>

namespace tokamak {

struct OptimizerConfig {
  double lr = 6e-4;
  double min_lr_ratio = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  // matrices only
  double clip = 1.0;          // global gradient norm; 0: off
  int64_t warmup_steps = 100;
};

}  // namespace tokamak
