// FP8 that drifts is noticed: every train.shadow_every steps a micro-batch is computed in BF16 as well, with the same
// parameters, and the gradients are compared. Where they are too far apart, the products that make them so go on in
// BF16. Tests: tests/run/shadow_test.cpp, tests/mesh/shadow_test.cpp, tests/e2e/shadow_test.cpp.
#pragma once

#include "checkpoint/metrics.h"
#include "compile/shadow_step.h"
#include "run/session.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tokamak {

/// Whether the run is to have one; UserError where it is asked for and cannot be: in a pipeline.
bool has_shadow(const ResolvedRun& run);

/// Of these kinds of weights those without whose products in eight bits the cosine is `bound` or more: one after the
/// other that with which it is largest then; all, where that is not enough. `cosine_without`: of a list of kinds.
std::vector<std::string> find_drifting(const std::set<std::string>& kinds, double bound,
                                       const std::function<double(const std::vector<std::string>&)>& cosine_without);

/// From sums of squares of two vectors, the second of which is what the first should be, and of what they differ by: 1
/// where both are zeros, 0 where the first alone is no number, NaN where the second is none.
double cosine_of(double squares, double should_be_squares, double difference_squares);

/// One line for the user.
std::string describe_fallback(const ShadowMetrics& shadow, const std::vector<std::string>& causes, int64_t step,
                              double bound);

class Shadow {
 public:
  /// Compiles and allocates: the gradients in bf16, and what the step's arena is too small for. All ranks call it, and
  /// make the same calls; all outlive it.
  Shadow(Session& session, const Platform& platform, Backend& backend, const MeshRanks* ranks);

  /// On the thread that computes, between steps. `batch`: a micro-batch of all data ranks. The same on all ranks.
  ShadowMetrics compare(const Batch& batch, int64_t step) { return compare(*programs_, batch, step); }

  /// The kinds to leave out, so that the least cosine of a kind's gradients is `bound`: see find_drifting. Compiles a
  /// shadow for each that it tries, which `run` runs on the thread that computes.
  std::vector<std::string> find_causes(const Batch& batch, int64_t step, double bound,
                                       const std::function<void(const std::function<void()>&)>& run);

 private:
  struct Programs {
    ShadowStep shadow;
    StepRunner runner;
  };
  std::unique_ptr<Programs> make(const std::vector<std::string>& without);
  ShadowMetrics compare(Programs& programs, const Batch& batch, int64_t step);

  Session& session_;
  Platform platform_;
  Backend& backend_;
  const MeshRanks* ranks_;
  std::unique_ptr<Programs> programs_;
};

}  // namespace tokamak
