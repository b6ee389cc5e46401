// The learning rate as a function of the step. Tests: tests/run/learning_rate_test.cpp.
#pragma once

#include <cstdint>

namespace tokamak {

struct OptimizerConfig;

/// The rate of optimizer step `step`, counted from 0, of a run of `run_steps`; w = warmup_steps, n = schedule_steps or
/// `run_steps`, min = lr * min_lr_ratio:
///   step < w:      lr * (step + 1) / w
///   step >= n:     min
///   else:          min + (lr - min) * d(p), p = (step - b) / (n - b), from step b on, and lr before it
///   cosine:        b = w, d(p) = (1 + cos(pi * p)) / 2: Loshchilov and Hutter, "SGDR" (2017), one cycle
///   linear:        b = w, d(p) = 1 - p
///   1-sqrt:        b = w, d(p) = 1 - sqrt(p)
///   wsd:           b = n - wsd_decay_share * n, d is wsd_decay: warmup-stable-decay, Hu et al., "MiniCPM" (2024);
///                  Haegele et al., "Scaling laws and compute-optimal training beyond fixed training durations" (2024)
/// After the warm-up, and without an end:
///   inverse_sqrt:  max(lr * sqrt(w / step), min): Vaswani et al., "Attention is all you need" (2017); w is 1 or more
///   constant:      lr
double learning_rate(int64_t step, const OptimizerConfig& config, int64_t run_steps);

/// Whether the schedule depends on how many steps it is for.
bool has_end(const OptimizerConfig& config);
int64_t schedule_steps(const OptimizerConfig& config, int64_t run_steps);

}  // namespace tokamak
