// The arithmetic of a training step in closed form. Legend: B sequences, s their length, l blocks, h width, V
// vocabulary. Tests: tests/advise/flops_test.cpp.
#pragma once

#include "config/model_config.h"

#include <cstdint>

namespace tokamak {

/// Of all matrix products of a step of B sequences, attention as if every position saw all others: with each block's
/// forward pass computed again F = 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)), equation 3 of arXiv 2104.04473; without
/// that F = 72 B s l h^2 (1 + s / (6 h) + V / (12 l h)).
double step_flops(const ModelConfig& model, int64_t sequences, bool recomputes);

/// Seconds that `tokens` take a model of so many parameters on GPUs of so many FLOP/s each, with each block's forward
/// pass computed again: 8 T P / (n x), equation 4 of arXiv 2104.04473.
double training_seconds(double tokens, double parameters, double gpus, double flops_per_second);

}  // namespace tokamak
