#include "config/train_ramp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "base/error.h"
#include "config/config.h"
#include "config/number.h"

namespace tokamak {
namespace {

[[noreturn]] void refuse(const std::string& phase, const std::string& why) {
  user_error(
      "[train.ramp] expected 'STEP: total_batch=TOKENS sequence=TOKENS' with one or both of them, for the steps up to "
      "STEP, got '{}': {}; for example '500: total_batch=65536 sequence=256'",
      phase, why);
}

int64_t number_of(const std::string& phase, const std::string& text) {
  std::optional<int64_t> value = parse_whole(text);
  if (!value || *value < 1) refuse(phase, fmt::format("'{}' is no number of at least 1", text));
  return *value;
}

RampPhase parse_phase(const std::string& text, const RampPhase& whole) {
  size_t colon = text.find(':');
  if (colon == std::string::npos) refuse(text, "there is no colon behind a step");
  std::string until;
  std::istringstream(text.substr(0, colon)) >> until;
  RampPhase phase = whole;
  phase.until = number_of(text, until);
  std::istringstream settings(text.substr(colon + 1));
  bool said = false;
  for (std::string setting; settings >> setting; said = true) {
    size_t sign = setting.find('=');
    std::string key = setting.substr(0, sign);
    if (sign == std::string::npos || (key != "total_batch" && key != "sequence"))
      refuse(text, fmt::format("'{}' is neither total_batch= nor sequence=", setting));
    (key == "sequence" ? phase.sequence : phase.step_tokens) = number_of(text, setting.substr(sign + 1));
  }
  if (!said) refuse(text, "it says nothing of these steps");
  return phase;
}

// After a phase that ends so early, and before the whole.
void check_order(const std::string& text, const RampPhase& phase, const RampPhase& before, const RampPhase& whole) {
  if (phase.until <= before.until) refuse(text, fmt::format("the phase before ends at step {}", before.until));
  if (phase.step_tokens < before.step_tokens || phase.step_tokens > whole.step_tokens)
    refuse(text, fmt::format("its steps are not of {} to {} tokens, as steps do not become smaller",
                             std::max<int64_t>(before.step_tokens, 1), whole.step_tokens));
  if (phase.sequence < before.sequence || whole.sequence % phase.sequence != 0)
    refuse(text, fmt::format("its sequences are no divisor of model.context = {} that is at least {}", whole.sequence,
                             std::max<int64_t>(before.sequence, 1)));
}

}  // namespace

std::vector<RampPhase> ramp_phases(const RunConfig& config) {
  RampPhase whole{kNoRampEnd, config.step_tokens(), config.model.context}, before;
  std::vector<RampPhase> phases;
  for (const std::string& text : config.train.ramp) {
    RampPhase phase = parse_phase(text, whole);
    check_order(text, phase, before, whole);
    phases.push_back(before = phase);
  }
  phases.push_back(whole);
  return phases;
}

RampPhase ramp_phase(const RunConfig& config, int64_t done) {
  for (const RampPhase& phase : ramp_phases(config))
    if (done < phase.until) return phase;
  TOKAMAK_CHECK(false, "{} steps", done);
}

double ramp_tokens(const RunConfig& config, int64_t steps) {
  double tokens = 0;
  int64_t from = 0;
  for (const RampPhase& phase : ramp_phases(config)) {
    int64_t until = std::min(phase.until, steps);
    tokens += double(until - from) * double(phase.step_tokens);
    from = until;
  }
  return tokens;
}

double ramp_steps(const RunConfig& config, double tokens) {
  double before = 0;
  for (const RampPhase& phase : ramp_phases(config)) {
    double steps = std::ceil(tokens / double(phase.step_tokens)), most = double(phase.until) - before;
    if (steps <= most) return before + steps;
    tokens -= most * double(phase.step_tokens);
    before = double(phase.until);
  }
  return before;
}

int64_t ramp_slots(const RunConfig& config, const RampPhase& phase, int64_t slots) {
  int64_t tokens_of_slot = config.step_tokens() / slots;
  return phase.step_tokens % tokens_of_slot == 0 ? phase.step_tokens / tokens_of_slot : 0;
}

}  // namespace tokamak
