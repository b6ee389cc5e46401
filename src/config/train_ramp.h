// train.ramp: at the beginning of a run steps are of fewer tokens, or sequences are shorter. Tests:
// tests/config/train_ramp_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

namespace tokamak {

struct RunConfig;

/// Steps that are alike.
struct RampPhase {
  int64_t until = 0;        // how many steps of the run are done when it ends
  int64_t step_tokens = 0;  // of a step
  int64_t sequence = 0;     // tokens of a sequence: a divisor of model.context, whose windows are cut into so long ones
  bool operator==(const RampPhase&) const = default;
};

/// "until STEP" of the last phase.
inline constexpr int64_t kNoRampEnd = int64_t(1) << 62;

/// From "500: total_batch=65536 sequence=256", with one or both; what a phase leaves out is as in the whole. In order,
/// and the last phase is the whole run as the other settings have it. UserError for any other form, for steps that do
/// not ascend, and for sizes that descend, exceed the whole or do not divide it.
std::vector<RampPhase> ramp_phases(const RunConfig& config);

/// The phase of the step after `done` steps.
RampPhase ramp_phase(const RunConfig& config, int64_t done);

/// Tokens of the first `steps` steps.
double ramp_tokens(const RunConfig& config, int64_t steps);
/// The fewest steps of at least so many tokens.
double ramp_steps(const RunConfig& config, double tokens);

/// Slots of a phase, where the whole step has `slots`: as many as its share of the sequences; 0 if that is no number.
int64_t ramp_slots(const RunConfig& config, const RampPhase& phase, int64_t slots);

}  // namespace tokamak
