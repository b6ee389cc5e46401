// The learning rate as a function of the step. Tests: tests/run/learning_rate_test.cpp.
#pragma once

#include <cstdint>

namespace tokamak {

struct OptimizerConfig;

/// The rate of optimizer step `step`, counted from 0, of `total_steps`; w = warmup_steps:
///   step < w:  lr * (step + 1) / w
///   else:      min + (lr - min) * (1 + cos(pi * p)) / 2, p = (step - w) / (total_steps - w), min = lr * min_lr_ratio
/// and min from total_steps on. Linear warm-up, then half a cosine: Loshchilov and Hutter, "SGDR" (2017), one cycle.
double learning_rate(int64_t step, const OptimizerConfig& config, int64_t total_steps);

}  // namespace tokamak
