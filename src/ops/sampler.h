// Choosing the next token from logits. Tests: tests/ops/sampler_test.cpp.
#pragma once

#include <cstdint>
#include <span>

namespace tokamak {

inline constexpr int32_t kNoToken = -1;

struct SamplingOptions {
  double temperature = 1.0;        // 0: the likeliest token
  int64_t top_k = 0;               // only the k likeliest tokens; 0: all
  double top_p = 1.0;              // of those, the fewest likeliest ones whose probabilities sum to at least top_p
  double min_p = 0;                // of those, the ones with at least this share of the likeliest token's probability
  double repetition_penalty = 1;   // logits of tokens in the text so far are divided by it; below 0 multiplied
  bool log_probabilities = false;  // wanted of each token
};

/// UserError for values outside their range: temperature >= 0, top_k >= 0, 0 < top_p <= 1, 0 <= min_p <= 1,
/// repetition_penalty > 0.
void validate(const SamplingOptions& options);

/// Whether the host has to see the logits: the op sample_token knows of the first three alone.
bool needs_logits(const SamplingOptions& options);

/// The penalty on each token of `seen`, once (Keskar et al., "CTRL", 2019; the sign as in Hugging Face's
/// RepetitionPenaltyLogitsProcessor).
void penalise(std::span<float> logits, std::span<const int32_t> seen, double penalty);

/// Of a token by the model alone, natural: log softmax of the logits.
double log_probability(std::span<const float> logits, int32_t token);

/// Token id for one row of logits (V): softmax(logits / temperature), cut by top-k, renormalised, cut by top-p and by
/// min-p (the order of Hugging Face), then the inverse of its distribution function at `uniform` in [0, 1). Of equal
/// logits the lower id counts as the likelier. -inf logits are never chosen; kNoToken where one is NaN or +inf or all
/// are -inf (a broken model).
int32_t sample(std::span<const float> logits, const SamplingOptions& options, float uniform);

/// A seed from its low and its high word.
constexpr int64_t sampling_seed(int32_t low, int32_t high) {
  return int64_t(uint64_t(uint32_t(high)) << 32 | uint32_t(low));
}

/// The random number for the token of that number: a pure function, so a seed always gives the same
/// text.
float sampling_uniform(int64_t seed, int64_t position);

}  // namespace tokamak
