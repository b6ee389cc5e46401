// Choosing the next token from logits. Tests: tests/train/sampler_test.cpp.
#pragma once

#include <cstdint>
#include <span>

namespace tokamak {

struct SamplingOptions {
  double temperature = 1.0;  // 0: the likeliest token
  int64_t top_k = 0;         // only the k likeliest tokens; 0: all
  double top_p = 1.0;        // of those, the fewest likeliest ones whose probabilities sum to at least top_p
};

/// UserError for values outside their range: temperature >= 0, top_k >= 0, 0 < top_p <= 1.
void validate(const SamplingOptions& options);

/// Token id for one row of logits (V): softmax(logits / temperature), cut by top-k, renormalised, cut by top-p (the
/// order of Hugging Face), then the inverse of its distribution function at `uniform` in [0, 1). Of equal logits the
/// lower id counts as the likelier. -inf logits are never chosen; UserError for NaN or +inf (a broken model).
int32_t sample(std::span<const float> logits, const SamplingOptions& options, float uniform);

/// The random number for position `position` of sequence `sequence`: a pure function, so a seed always gives the same
/// text.
float sampling_uniform(int64_t seed, int64_t position, int64_t sequence = 0);

}  // namespace tokamak
