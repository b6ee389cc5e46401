// A shadow of a run with FP8: a micro-batch as the run computes it, and in BF16, and how far apart their gradients are.
// A pure function of its inputs. Tests: tests/mesh/shadow_test.cpp.
#pragma once

#include "compile/compiled_step.h"

#include <set>

namespace tokamak {

/// Kinds are those of ops/parameter_kind.h.
struct ShadowStep {
  /// Two programs that take a micro-batch of all data ranks: "shadow", which leaves its gradients in bf16 in states
  /// shadow.<name>, with results loss and saturated (passes/count_saturated.h); then "shadow_bf16", with result loss,
  /// and for each kind of parameters squares.<kind>, bf16_squares.<kind> and difference_squares.<kind>: the sums of
  /// squares of the first gradients, of the second, and of what they differ by.
  CompiledStep step;
  std::set<std::string> kinds;   // of all parameters
  std::set<std::string> float8;  // those of weights with products of eight bits
};

/// Of a run without a pipeline. Ranks add up in any order.
ShadowStep compile_shadow(const ResolvedRun& run, const Platform& platform);

}  // namespace tokamak
