#include "train/sampler.h"

#include "base/error.h"
#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace tokamak {
namespace {

// Keeps clear of the streams of dropout (small numbers) and initialisation (2^32 and up).
constexpr uint64_t kStream = uint64_t(2) << 32;

int32_t largest(std::span<const float> logits) {
  int32_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == std::numeric_limits<float>::infinity())
      user_error(
          "[generate] expected finite logits, got {} for token {}; the model is broken (did its training diverge?): "
          "use an earlier checkpoint",
          logits[i], i);
    if (logits[i] > logits[size_t(best)]) best = int32_t(i);
  }
  if (logits[size_t(best)] == -std::numeric_limits<float>::infinity())
    user_error("[generate] expected a token with a finite logit, got -inf for all {}; use an earlier checkpoint",
               logits.size());
  return best;
}

struct Likelier {
  std::span<const float> logits;
  bool operator()(int32_t a, int32_t b) const {
    float x = logits[size_t(a)], y = logits[size_t(b)];
    return x > y || (x == y && a < b);
  }
};

/// Token ids with their weights exp((logit - largest) / temperature), and the order of their likelihood.
class Candidates {
 public:
  Candidates(std::span<const float> logits, double max, double temperature) : likelier_{logits}, ids_(logits.size()) {
    std::iota(ids_.begin(), ids_.end(), 0);
    weights_.reserve(logits.size());
    for (float logit : logits) weights_.push_back(std::exp((double(logit) - max) / temperature));
  }

  void keep_top_k(size_t k) {
    if (k >= ids_.size()) return;
    std::nth_element(ids_.begin(), ids_.begin() + ptrdiff_t(k), ids_.end(), likelier_);
    ids_.resize(k);
  }

  void keep_top_p(double p) {
    double rest = p * total();
    auto less_likely = [this](int32_t a, int32_t b) { return likelier_(b, a); };
    std::make_heap(ids_.begin(), ids_.end(), less_likely);  // few of many are kept: cheaper than sorting all
    auto kept = ids_.end();
    do {
      std::pop_heap(ids_.begin(), kept, less_likely);
      rest -= weights_[size_t(*--kept)];
    } while (rest > 0 && kept != ids_.begin());
    ids_.erase(ids_.begin(), kept);
  }

  int32_t choose(double uniform) {
    std::sort(ids_.begin(), ids_.end());
    double target = uniform * total(), sum = 0;
    int32_t chosen = ids_[0];
    for (int32_t id : ids_) {
      if (weights_[size_t(id)] == 0) continue;
      chosen = id;  // the last one also takes what rounding leaves over
      sum += weights_[size_t(id)];
      if (sum > target) break;
    }
    return chosen;
  }

 private:
  double total() const {
    double sum = 0;
    for (int32_t id : ids_) sum += weights_[size_t(id)];
    return sum;
  }

  Likelier likelier_;
  std::vector<int32_t> ids_;
  std::vector<double> weights_;  // by id
};

}  // namespace

void validate(const SamplingOptions& o) {
  if (!(o.temperature >= 0 && std::isfinite(o.temperature)))
    user_error("[generate] expected temperature >= 0, got {}; 0 takes the likeliest token, 1 samples as trained",
               o.temperature);
  if (o.top_k < 0) user_error("[generate] expected top_k >= 0, got {}; 0 switches it off", o.top_k);
  if (!(o.top_p > 0 && o.top_p <= 1))
    user_error("[generate] expected 0 < top_p <= 1, got {}; 1 switches it off", o.top_p);
}

int32_t sample(std::span<const float> logits, const SamplingOptions& options, float uniform) {
  TOKAMAK_CHECK(!logits.empty(), "no logits to sample from");
  validate(options);
  int32_t best = largest(logits);
  if (options.temperature == 0) return best;
  Candidates candidates(logits, double(logits[size_t(best)]), options.temperature);
  if (options.top_k > 0) candidates.keep_top_k(size_t(options.top_k));
  if (options.top_p < 1) candidates.keep_top_p(options.top_p);
  return candidates.choose(uniform);
}

float sampling_uniform(int64_t seed, int64_t position, int64_t sequence) {
  return uniform_float(philox4x32(uint64_t(seed), uint64_t(position), kStream + uint64_t(sequence))[0]);
}

}  // namespace tokamak
