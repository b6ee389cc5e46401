// Dynamic loss scaling (Micikevicius et al., "Mixed precision training", 2018), so that small gradients survive in f16.
// All of it is state of the graph. Tests: tests/autodiff/loss_scaling_test.cpp.
#pragma once

#include "graph/graph.h"

namespace tokamak {

class GraphBuilder;

/// Its states, f32[].
inline constexpr const char* kLossScale = "scaler.scale";
inline constexpr const char* kGoodSteps = "scaler.good_steps";  // since the scale changed
inline constexpr const char* kSkippedSteps = "scaler.skipped";  // since the run began
inline constexpr const char* kLossScalingStates[] = {kLossScale, kGoodSteps, kSkippedSteps};

struct LossScaling {
  double growth_interval = 2000;  // steps without overflow after which the scale doubles
};

/// The scale, f32[]; appended to the arguments where the graph lacks it.
ValueId loss_scale(GraphBuilder& g);

/// The loss times the scale: what to differentiate.
ValueId scaled_loss(GraphBuilder& g, ValueId loss);

/// Appends the next scale and counters: a step that was not `good` halves the scale, which doubles after
/// growth_interval good ones. Results loss_scale (the one that was used) and skipped (this step included).
void append_next_scale(GraphBuilder& g, ValueId good, const LossScaling& scaling);

}  // namespace tokamak
