#include "ops/sampler.h"

#include "base/error.h"
#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace tokamak {
namespace {

// Keeps clear of the streams of dropout (small numbers) and initialisation (2^32 and up).
constexpr uint64_t kStream = uint64_t(2) << 32;

// The likeliest token, or kNoToken.
int32_t find_largest(std::span<const float> logits) {
  int32_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < std::numeric_limits<float>::infinity())) return kNoToken;
    if (logits[i] > logits[size_t(best)]) best = int32_t(i);
  }
  return logits[size_t(best)] == -std::numeric_limits<float>::infinity() ? kNoToken : best;
}

struct Candidate {
  float logit;
  int32_t id;
  double weight = 0;  // exp((logit - largest) / temperature)
};

bool is_likelier(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// In order of their ids.
class Candidates {
 public:
  Candidates(std::span<const float> logits, int64_t top_k) {
    if (top_k <= 0 || size_t(top_k) >= logits.size()) {
      for (size_t i = 0; i < logits.size(); ++i) list_.push_back({logits[i], int32_t(i)});
      return;
    }
    // The values alone are moved, which is far cheaper than moving candidates.
    std::vector<float> values(logits.begin(), logits.end());
    std::nth_element(values.begin(), values.begin() + top_k - 1, values.end(), std::greater<>());
    float least = values[size_t(top_k - 1)];
    auto spare = size_t(top_k - std::count_if(logits.begin(), logits.end(), [&](float x) { return x > least; }));
    for (size_t i = 0; i < logits.size(); ++i)
      if (logits[i] > least || (logits[i] == least && spare > 0 && spare--)) list_.push_back({logits[i], int32_t(i)});
  }

  void weigh(double max, double temperature) {
    for (Candidate& c : list_) c.weight = std::exp((double(c.logit) - max) / temperature);
  }

  void keep_top_p(double p) {
    double rest = p * total();
    auto less_likely = [](const Candidate& a, const Candidate& b) { return is_likelier(b, a); };
    std::make_heap(list_.begin(), list_.end(), less_likely);  // few of many are kept: cheaper than sorting all
    auto kept = list_.end();
    do {
      std::pop_heap(list_.begin(), kept, less_likely);
      rest -= (--kept)->weight;
    } while (rest > 0 && kept != list_.begin());
    list_.erase(list_.begin(), kept);
    std::sort(list_.begin(), list_.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  }

  // The likeliest one weighs 1.
  void keep_min_p(double p) {
    std::erase_if(list_, [&](const Candidate& c) { return c.weight < p; });
  }

  int32_t choose(double uniform) const {
    double target = uniform * total(), sum = 0;
    int32_t chosen = list_[0].id;
    for (const Candidate& c : list_) {
      if (c.weight == 0) continue;
      chosen = c.id;  // the last one also takes what rounding leaves over
      sum += c.weight;
      if (sum > target) break;
    }
    return chosen;
  }

 private:
  double total() const {
    double sum = 0;
    for (const Candidate& c : list_) sum += c.weight;
    return sum;
  }

  std::vector<Candidate> list_;
};

}  // namespace

void validate(const SamplingOptions& o) {
  if (!(o.temperature >= 0 && std::isfinite(o.temperature)))
    user_error("[generate] expected temperature >= 0, got {}; 0 takes the likeliest token, 1 samples as trained",
               o.temperature);
  if (o.top_k < 0) user_error("[generate] expected top_k >= 0, got {}; 0 switches it off", o.top_k);
  if (!(o.top_p > 0 && o.top_p <= 1))
    user_error("[generate] expected 0 < top_p <= 1, got {}; 1 switches it off", o.top_p);
  if (!(o.min_p >= 0 && o.min_p <= 1))
    user_error("[generate] expected 0 <= min_p <= 1, got {}; 0 switches it off", o.min_p);
  if (!(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty)))
    user_error("[generate] expected repetition_penalty > 0, got {}; 1 switches it off, more avoids repetitions",
               o.repetition_penalty);
}

bool needs_logits(const SamplingOptions& o) { return o.min_p > 0 || o.repetition_penalty != 1 || o.log_probabilities; }

void penalise(std::span<float> logits, std::span<const int32_t> seen, double penalty) {
  std::vector<int32_t> once(seen.begin(), seen.end());
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (int32_t id : once) {
    if (id < 0 || size_t(id) >= logits.size()) continue;
    float& logit = logits[size_t(id)];
    logit = float(logit < 0 ? logit * penalty : logit / penalty);
  }
}

double log_probability(std::span<const float> logits, int32_t token) {
  double largest = *std::ranges::max_element(logits), sum = 0;
  for (float logit : logits) sum += std::exp(logit - largest);
  return logits[size_t(token)] - largest - std::log(sum);
}

int32_t sample(std::span<const float> logits, const SamplingOptions& options, float uniform) {
  TOKAMAK_CHECK(!logits.empty(), "no logits to sample from");
  int32_t best = find_largest(logits);
  if (options.temperature == 0 || best == kNoToken) return best;
  Candidates candidates(logits, options.top_k);
  candidates.weigh(double(logits[size_t(best)]), options.temperature);
  if (options.top_p < 1) candidates.keep_top_p(options.top_p);
  if (options.min_p > 0) candidates.keep_min_p(options.min_p);
  return candidates.choose(uniform);
}

float sampling_uniform(int64_t seed, int64_t position) {
  return uniform_float(philox4x32(uint64_t(seed), uint64_t(position), kStream)[0]);
}

}  // namespace tokamak
